/** The OpenAPI document of our own wire, made of its routes and schemas. */
import * as z from 'zod';
import type { JsonObject } from '../checks.js';
import { wireError } from './answer-schemas.js';
import { type RouteRow, routeTable } from './route-table.js';

type Named = readonly [name: string, schema: z.ZodType];

const errorName = 'Error';
const reference = (name: string): JsonObject => ({ $ref: `#/components/schemas/${name}` });
const json = (schema: JsonObject): JsonObject => ({ 'application/json': { schema } });

/** A document of OpenAPI 3.1. @param version of the server */
export function openApiDocument({ version }: { readonly version: string }): JsonObject {
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const row of routeTable) {
    const path = row.path.replace(/:(\w+)(\{\.\+\})?/g, '{$1}');
    paths[path] = { ...paths[path], [row.method]: operationOf(row) };
  }
  const answers = routeTable.flatMap(({ answer }) => (typeof answer === 'string' ? [] : [answer]));
  const bodies = routeTable.flatMap(({ body }) => (body === undefined ? [] : [body]));
  return {
    openapi: '3.1.1',
    info: {
      title: 'Loopwright',
      summary: 'Models, usage and the registry of saved versions.',
      description:
        'The routes of Loopwright itself. Those of the wires are described by the APIs that they follow: SageMaker training sessions, Tinker and OpenAI.',
      version,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }, { apiKey: [] }],
    paths,
    components: {
      schemas: schemasOf([...answers, ...bodies, [errorName, wireError]]),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'The key of the server, where it has one.' },
        apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
      },
    },
  };
}

function operationOf({ path, name, summary, query, body, answer, open = false }: RouteRow): JsonObject {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, parameter]) => ({
    name: parameter,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const content = typeof answer === 'string' ? { [answer]: {} } : json(reference(answer[0]));
  const refused = { description: 'Refused, or failed.', content: json(reference(errorName)) };
  return {
    operationId: name,
    summary,
    ...(open ? { security: [] } : {}),
    parameters: [...inPath, ...(query === undefined ? [] : parametersOf(query))],
    ...(body === undefined ? {} : { requestBody: { required: true, content: json(reference(body[0])) } }),
    responses: { 200: { description: 'What was asked for.', content }, '4XX': refused, '5XX': refused },
  };
}

function parametersOf(query: z.ZodObject): JsonObject[] {
  return Object.entries(query.shape).map(([name, member]) => {
    const { description, ...schema } = schemaOf(member as z.ZodType); // true: members of an object's schema are schemas
    return { name, in: 'query', required: false, ...(description === undefined ? {} : { description }), schema };
  });
}

function schemasOf(named: readonly Named[]): JsonObject {
  return Object.fromEntries(named.map(([name, schema]) => [name, schemaOf(schema)]));
}

/** As one writes it: objects may get members that are not told of here yet, but for requests, which refuse unknown ones. */
function schemaOf(schema: z.ZodType): JsonObject {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', target: 'draft-2020-12' });
  return rest;
}
