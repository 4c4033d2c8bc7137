/** JSON Schemas, compiled once, with patterns that take linear time. */
import { complaint } from '@loopwright/protocol';
import type { ErrorObject, Options, ValidateFunction } from 'ajv';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { RE2JS } from 're2js';

export type JsonSchema = Readonly<Record<string, unknown>> | boolean;
export type SchemaDialect = '2020-12' | 'draft-07';

/** Errors of a value, none where it is valid. */
export type SchemaCheck = (value: unknown) => readonly ErrorObject[];

const draft7 = /^https?:\/\/json-schema\.org\/draft-07\/schema#?$/;
const draft2020 = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;

/**
 * @param dialect by default what `$schema` says, or 2020-12
 * @throws `invalid_argument`, field `schema`, for one that isn't valid: unknown keywords and formats, a `$ref` to nothing or to
 *   another document, patterns that RE2 doesn't take
 */
export function compileSchema(schema: JsonSchema, dialect?: SchemaDialect): SchemaCheck {
  const options: Options = {
    allErrors: true,
    strict: true,
    strictTypes: false,
    strictTuples: false,
    strictRequired: false,
    // `constructor` is there only when the answer has it.
    ownProperties: true,
    logger: false,
    code: { regExp: Object.assign(linearPattern, { code: 'linearPattern' }) },
  };
  let validate: ValidateFunction;
  try {
    const ajv = (dialect ?? dialectOf(schema)) === 'draft-07' ? new Ajv(options) : new Ajv2020(options);
    (addFormats as unknown as typeof addFormats.default)(ajv); // its types don't know that CommonJS comes as the default
    validate = ajv.compile(schema as Record<string, unknown>); // true: ajv changes no schema
  } catch (cause) {
    throw complaint({
      field: 'schema',
      expected: 'a valid JSON Schema of draft 2020-12 or draft-07',
      got: cause instanceof Error ? cause.message : String(cause),
      remedy: 'correct the schema',
      cause,
    });
  }
  if ('$async' in validate)
    throw complaint({ field: 'schema.$async', expected: 'none', got: 'an asynchronous schema' });
  return (value) => (validate(value) ? [] : [...(validate.errors ?? [])]);
}

function dialectOf(schema: JsonSchema): SchemaDialect {
  const named = typeof schema === 'object' && schema !== null ? schema.$schema : undefined;
  if (named === undefined) return '2020-12';
  if (typeof named === 'string' && draft7.test(named)) return 'draft-07';
  if (typeof named === 'string' && draft2020.test(named)) return '2020-12';
  throw new Error('$schema names neither draft 2020-12 nor draft-07');
}

/** Stands where ajv would make a RegExp: the same two methods, and no backtracking over the text of others. */
function linearPattern(pattern: string): { test: (text: string) => boolean; toString: () => string } {
  const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
  // ajv tells patterns apart by their text.
  return { test: (text) => compiled.matcher(text).find(), toString: () => `/${pattern}/u` };
}
