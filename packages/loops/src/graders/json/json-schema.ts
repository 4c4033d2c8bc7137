/** Answers that are JSON of a given shape. */
import { complaint } from '@loopwright/protocol';
import type { Problem } from '../../environments/environment.js';
import { type Component, type ComponentOptions, labelled, type Score } from '../component.js';
import { type JsonForm, readJson } from './read-json.js';
import { sameJson } from './same-json.js';
import { compileSchema, type JsonSchema, type SchemaDialect } from './schema.js';

export interface JsonSchemaOptions extends ComponentOptions {
  readonly schema: JsonSchema;
  /** Default: what its `$schema` says, or draft 2020-12. */
  readonly dialect?: SchemaDialect;
  /** Default `either`. See {@link readJson}. */
  readonly form?: JsonForm;
}

/**
 * 1 when the answer is JSON that the schema takes, else 0; `unparsed` with 0 when it is no JSON. The trace lists what is wrong.
 *
 * @throws `invalid_argument`, field `schema`, for a schema that isn't valid
 */
export function jsonSchema<P extends Problem = Problem>(options: JsonSchemaOptions): Component<P> {
  const check = compileSchema(options.schema, options.dialect);
  return {
    ...labelled('json_schema', options),
    score: ({ text, stopReason }) => {
      const read = readJson(text, options.form, stopReason);
      if (read.status === 'unparsed') return read;
      const errors = check(read.value);
      const said = errors.slice(0, 5).map(({ instancePath, message }) => `${instancePath || '/'} ${message ?? ''}`);
      return { status: 'ok', score: errors.length === 0 ? 1 : 0, trace: said.join('; ') || 'valid' };
    },
  };
}

export interface JsonFieldsOptions<P extends Problem> {
  /** By the name that the component has after `json.`: where the field is, as a JSON Pointer such as `/people/0/name`. */
  readonly fields: Readonly<Record<string, string | JsonField>>;
  /** The right object of a problem. A field that it hasn't doesn't apply to that problem. */
  readonly expected?: (problem: P) => unknown;
  /** In place of `expected`: a field is right when it is there, and nothing in it is wrong. */
  readonly schema?: JsonSchema;
  readonly dialect?: SchemaDialect;
  readonly form?: JsonForm;
  /** Of all fields together; default 1. Those that name no weight have equal shares of it. */
  readonly weight?: number;
}

export interface JsonField {
  readonly pointer: string;
  /** Default: its equal share. */
  readonly weight?: number;
  /** By how much numbers may differ; default 0. Not with `schema`. */
  readonly tolerance?: number;
  /** Default false. Not with `schema`. */
  readonly ignoreCase?: boolean;
}

/**
 * Partial credit: a component `json.<name>` for each field, 1 when it is right, else 0, so that each is logged apart.
 * All are `unparsed` with 0 when the answer is no JSON.
 *
 * @throws `invalid_argument` for no fields, a pointer that is none, both or neither of `expected` and `schema`, a bad schema
 * @example
 * createGrader({ components: jsonFields({ fields: { city: '/city', zip: '/address/zip' }, expected: (p) => JSON.parse(p.answer) }) });
 */
export function jsonFields<P extends Problem = Problem>(options: JsonFieldsOptions<P>): readonly Component<P>[] {
  const { expected, schema, weight = 1, form } = options;
  const fields = Object.entries(options.fields).map(([name, field]) => ({
    name,
    ...(typeof field === 'string' ? { pointer: field } : field),
  }));
  if (fields.length === 0) throw complaint({ field: 'fields', expected: 'at least one field', got: 'none' });
  if ((expected === undefined) === (schema === undefined))
    throw complaint({ field: 'expected', expected: 'either expected or schema', got: schema ? 'both' : 'neither' });
  const check = schema === undefined ? undefined : compileSchema(schema, options.dialect);
  return fields.map(({ name, pointer, tolerance, ignoreCase, weight: own = weight / fields.length }): Component<P> => {
    const path = pathOf(pointer, `fields.${name}`);
    const compare = {
      ...(tolerance === undefined ? {} : { tolerance }),
      ...(ignoreCase === undefined ? {} : { ignoreCase }),
    };
    return {
      name: `json.${name}`,
      weight: own,
      score: ({ text, stopReason, problem }): Score | number => {
        const right = expected === undefined ? undefined : memberAt(expected(problem), path);
        if (expected !== undefined && right === undefined) return { status: 'not_applicable' };
        const read = readJson(text, form, stopReason);
        if (read.status === 'unparsed') return read;
        const found = memberAt(read.value, path);
        if (found === undefined) return 0;
        if (check === undefined) return sameJson(found.value, right?.value, compare) ? 1 : 0;
        return check(read.value).some(({ instancePath: at }) => at === pointer || at.startsWith(`${pointer}/`)) ? 0 : 1;
      },
    };
  });
}

/** Steps of a JSON Pointer (RFC 6901). */
function pathOf(pointer: string, field: string): readonly string[] {
  if (typeof pointer !== 'string' || !/^(?:\/(?:[^~/]|~[01])*)+$/.test(pointer))
    throw complaint({ field, expected: 'a JSON Pointer such as /people/0/name', got: typeof pointer });
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function memberAt(value: unknown, path: readonly string[]): { readonly value: unknown } | undefined {
  let at = value;
  for (const step of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return undefined;
    if (Array.isArray(at) && !/^(?:0|[1-9]\d*)$/.test(step)) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[step]; // true: an object that has it
  }
  return { value: at };
}
