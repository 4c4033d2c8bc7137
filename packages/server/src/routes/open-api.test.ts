/** The OpenAPI document: valid, of all routes of our own wire and of no others, and true of what requests and answers are. */
import { temporaryDirectory } from '@loopwright/testkit';
import { routeTable } from '@loopwright/wires/loopwright/server';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterEach, describe, expect, it } from 'vitest';
import { openService } from '../main.js';
import { pass, saveState, saveWeights, step } from '../testing/operations.js';
import { type Body, makeModelDirectory, openTestServer, type TestServer } from '../testing/test-server.js';

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

async function started(): Promise<TestServer> {
  const server = await openTestServer();
  opened.push({ [Symbol.asyncDispose]: () => server.close() });
  await server.createSession('s');
  return server;
}

/** Members that no schema tells of are refused here, so that a new one must be told of. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  return 'properties' in inner && !('additionalProperties' in inner)
    ? { ...inner, additionalProperties: false }
    : inner;
}

async function schemas(server: TestServer): Promise<{ fits(name: string, value: unknown): void }> {
  const { body } = await server.request('GET', '/openapi.json');
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'document', ...(closed(body) as Body) });
  return {
    fits: (name, value) => {
      const validate = ajv.getSchema(`document#/components/schemas/${name}`);
      if (validate === undefined) throw new Error(`no schema ${name}`);
      expect({ name, valid: validate(value), errors: validate.errors }).toEqual({ name, valid: true, errors: null });
    },
  };
}

describe('the OpenAPI document', () => {
  it('is valid OpenAPI 3.1', async () => {
    const { body } = await (await started()).request('GET', '/openapi.json');
    expect(body.openapi).toBe('3.1.1');
    const result = await new Validator().validate({ ...body });
    expect(result).toMatchObject({ valid: true });
    expect(await new Validator().validate({ ...body, paths: { nowhere: {} } })).toMatchObject({ valid: false });
  });

  it('has every route of our own wire, and no other', async () => {
    await using data = await temporaryDirectory();
    const service = await openService({
      dataDir: data.path,
      models: [{ id: 'fake-model', directory: makeModelDirectory() }],
      wires: [],
    });
    opened.push({ [Symbol.asyncDispose]: () => service.close() });
    const ofHub = (path: string) => path.startsWith('/api/models/') || path.includes('/resolve/');
    const registered = service.app.routes.filter(({ path, method }) => method !== 'ALL' && !ofHub(path));
    const rows = routeTable.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
    expect(registered.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(rows.sort());
    expect(new Set(routeTable.map(({ name }) => name)).size).toBe(routeTable.length);
  });

  it('says of answers what they are', async () => {
    const server = await started();
    const { fits } = await schemas(server);
    await server.train('s', 1, pass());
    await server.train('s', 2, step());
    await server.train('s', 3, saveState);
    await server.train('s', 4, saveWeights(3600));
    const get = async (path: string) => (await server.request('GET', path)).body;
    const page = await get('/v1/registry/versions?limit=1');
    fits('VersionPage', page);
    expect(page.next).toBeDefined();
    const [saved] = page.versions as { groupName: string }[]; // as the schema says
    const path = `/v1/registry/versions/${saved?.groupName}/1`;
    const change = {
      description: 'taught',
      tags: { team: 'a', none: null },
      metrics: { 'eval/x': { value: 0.5 } },
      approval: { status: 'Rejected', note: 'no' },
      expiresAtMs: null,
    };
    fits('VersionChange', change);
    const changed = await server.request('PATCH', path, change);
    expect(changed).toMatchObject({ status: 200, body: { description: 'taught', metrics: [{ value: 0.5 }] } });
    fits('VersionDetail', changed.body);
    fits('GroupList', await get('/v1/registry/groups'));
    const ofGroup = { description: 'all', tags: { a: null } };
    fits('GroupChange', ofGroup);
    fits('VersionGroup', (await server.request('PATCH', `/v1/registry/groups/${saved?.groupName}`, ofGroup)).body);
    for (const by of ['session', 'model', 'operation']) fits('Usage', await get(`/v1/usage?by=${by}&from=0`));
    fits('Trace', await get('/v1/sessions/s/trace'));
    fits('ModelList', await get('/v1/models'));
    fits('Health', await get('/health'));
    fits('OpenApi', await get('/openapi.json'));
    fits('Nothing', (await server.request('DELETE', path)).body);
    fits('VersionDetail', await get(path));
  });

  it('says of refusals what they are, and refuses what the schemas of requests do not take', async () => {
    const server = await started();
    const { fits } = await schemas(server);
    await server.train('s', 1, saveState);
    const [saved] = (await server.request('GET', '/v1/registry/versions')).body.versions as { groupName: string }[]; // as the schema says
    const path = `/v1/registry/versions/${saved?.groupName}/1`;
    for (const change of [[], { other: 1 }, { approval: {} }, { metrics: { a: 1 } }, { expiresAtMs: -1 }, null]) {
      expect(() => fits('VersionChange', change)).toThrow();
      const refused = await server.request('PATCH', path, change);
      expect(refused).toMatchObject({ status: 400, body: { code: 'invalid_argument' } });
      fits('Error', refused.body);
    }
    for (const query of ['limit=0', 'limit=1e2', 'limit=', 'other=1', 'kind=x', 'ended=yes', '__proto__=1'])
      fits('Error', (await server.request('GET', `/v1/registry/versions?${query}`)).body);
    for (const query of ['by=x', 'from=-1', 'to=1.5', 'from=99999999999999999'])
      expect(await server.request('GET', `/v1/usage?${query}`)).toMatchObject({ status: 400 });
    fits('Error', (await server.request('GET', '/v1/nowhere')).body);
  });
});
