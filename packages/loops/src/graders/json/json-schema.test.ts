import { describe, expect, it } from 'vitest';
import type { Answer, Problem } from '../../environments/environment.js';
import { createGrader } from '../grader.js';
import { type JsonFieldsOptions, jsonFields, jsonSchema } from './json-schema.js';
import { type JsonForm, readJson } from './read-json.js';
import type { JsonSchema } from './schema.js';

const answer = (text: string, gold = '{}'): Answer<Problem> => ({
  problem: { id: 'p', question: '?', answer: gold },
  text,
  stopReason: 'stop',
});
const person: JsonSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1 },
    born: { type: 'string', format: 'date' },
    age: { type: 'integer' },
  },
  required: ['name', 'born'],
  additionalProperties: false,
};

describe('readJson', () => {
  const reasonOf = (text: string, form?: JsonForm) => {
    const read = readJson(text, form);
    return read.status === 'ok' ? read.value : read.reason;
  };

  it('reads a bare value or the last closed block, whatever talk is around the block', () => {
    expect(reasonOf('\uFEFF {"a": [1]}\r\n')).toEqual({ a: [1] });
    expect(reasonOf('Here:\r\n```json\r\n{"a": 1}\r\n```\r\nor\n```\n{"a": 2}\n```\nDone.')).toEqual({ a: 2 });
    expect(reasonOf('```json\n{"a": 1}\n```', 'bare')).toMatch('not JSON');
    expect(reasonOf('{"a": 1}', 'fenced')).toBe('no closed block of JSON');
  });

  it.each([
    ['text behind the value', '{"a": 1} as asked', 'not JSON from line 1, column 10 on'],
    ['two values', '{"a": 1}\n{"a": 2}', 'not JSON from line 2, column 1 on'],
    ['NaN', '{"a": NaN}', /^not JSON/],
    ['a comment', '{"a": 1 /* one */}', /^not JSON/],
    ['a comma too much', '[1,]', /^not JSON/],
    ['a key twice', '{"a": 1, "b": {"a": 2}, "a": 1}', 'a key stands twice in an object'],
    ['a key twice, once escaped', '{"a": 1, "\\u0061": 2}', 'a key stands twice in an object'],
    ['infinity', '[1e999]', 'a number that is not finite'],
    ['deep nesting', `${'['.repeat(65)}${']'.repeat(65)}`, 'nested deeper than 64'],
    ['very deep nesting', '['.repeat(100_000), /^not JSON/],
    ['too much', `"${'a'.repeat(200_000)}"`, 'more than 200000 characters'],
    ['nothing', ' \n', 'nothing was written'],
    ['talk', 'I do not know.', 'neither JSON nor a closed block of it'],
    ['an open block', '```json\n{"a": 1}', 'neither JSON nor a closed block of it'],
  ])('says what is wrong with %s, and never quotes it', (_, text, reason) => {
    expect(reasonOf(text)).toEqual(typeof reason === 'string' ? reason : expect.stringMatching(reason));
  });

  it('takes the same key in different objects, and brackets in strings', () => {
    expect(reasonOf('[{"a": "}{[\\"", "b": {"a": 1}}, {"a": 2}]')).toEqual([{ a: '}{["', b: { a: 1 } }, { a: 2 }]);
  });

  it('says when the token limit cut it', () => {
    expect(readJson('{"a": ', 'either', 'length')).toMatchObject({ reason: expect.stringContaining('token limit') });
  });
});

describe('jsonSchema', () => {
  const grade = (schema: JsonSchema, text: string) =>
    createGrader({ components: [jsonSchema({ schema })] })(answer(text));

  it('is 1 for what the schema takes, 0 for what it does not, unparsed for what is no JSON', async () => {
    expect(await grade(person, '{"name": "Ada", "born": "1815-12-10"}')).toMatchObject({ status: 'ok', reward: 1 });
    for (const text of [
      '{"name": "Ada"}',
      '{"name": "", "born": "1815-12-10"}',
      '{"name":"A","born":"1815-13-41"}',
      '[]',
    ])
      expect(await grade(person, text)).toMatchObject({ status: 'ok', reward: 0 });
    expect(await grade(person, 'Ada, 1815')).toMatchObject({ status: 'unparsed', reward: 0 });
  });

  it('tells in the trace what is wrong and where', async () => {
    const { components } = await grade(person, '{"name": "Ada", "born": "now", "x": 1}');
    expect(components?.[0]).toMatchObject({ trace: expect.stringContaining('/born must match format "date"') });
  });

  it('knows both dialects apart', async () => {
    const tuple = '[1, "a", true]';
    expect(await grade({ prefixItems: [{ type: 'number' }, { type: 'string' }], items: false }, tuple)).toMatchObject({
      reward: 0,
    });
    const old = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      items: [{ type: 'number' }, { type: 'string' }],
      additionalItems: false,
    };
    expect(await grade(old, tuple)).toMatchObject({ reward: 0 });
    expect(await grade(old, '[1, "a"]')).toMatchObject({ reward: 1 });
  });

  it('takes only members of the answer itself for its members', async () => {
    expect(await grade({ type: 'object', required: ['constructor'] }, '{}')).toMatchObject({ reward: 0 });
    expect(await grade({ type: 'object', additionalProperties: false }, '{"__proto__": 1}')).toMatchObject({
      reward: 0,
    });
  });

  it('keeps the patterns of a schema apart', async () => {
    const schema = { properties: { a: { pattern: '^x' }, b: { pattern: '^y' } } };
    expect(await grade(schema, '{"a": "x", "b": "y"}')).toMatchObject({ reward: 1 });
    expect(await grade(schema, '{"a": "x", "b": "x"}')).toMatchObject({ reward: 0 });
  });

  it('is not hung by a pattern on which backtracking engines hang', async () => {
    const started = performance.now();
    expect(await grade({ type: 'string', pattern: '^(a+)+$' }, `"${'a'.repeat(5000)}!"`)).toMatchObject({ reward: 0 });
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  it.each<[string, unknown]>([
    ['an unknown type', { type: 'text' }],
    ['an unknown keyword', { typo: 1 }],
    ['a reference to nothing', { $ref: '#/$defs/none' }],
    ['a reference to another document', { $ref: 'https://example.org/schema' }],
    ['a pattern that backtracks', { pattern: '(a)\\1' }],
    ['an unknown format', { format: 'starsign' }],
    ['another draft', { $schema: 'http://json-schema.org/draft-04/schema#' }],
    ['no schema', null],
  ])('refuses %s at construction, by name', (_, schema) => {
    expect(() => jsonSchema({ schema: schema as JsonSchema })).toThrow(
      expect.objectContaining({ code: 'invalid_argument', details: expect.objectContaining({ field: 'schema' }) }),
    );
  });
});

describe('jsonFields', () => {
  const grade = (options: Partial<JsonFieldsOptions<Problem>>, text: string, gold?: unknown) =>
    createGrader({
      components: jsonFields({ fields: { name: '/name', zip: '/address/zip' }, ...options }),
    })(answer(text, JSON.stringify(gold ?? {})));
  const expected = ({ answer: gold }: Problem): unknown => JSON.parse(gold);
  const gold = { name: 'Ada', address: { zip: '0150' } };

  it('gives each field its own component and its share', async () => {
    expect(await grade({ expected }, '{"name": "Ada", "address": {"zip": "0151"}}', gold)).toMatchObject({
      status: 'ok',
      reward: 0.5,
      components: [
        { name: 'json.name', weight: 0.5, score: 1 },
        { name: 'json.zip', weight: 0.5, score: 0 },
      ],
    });
    expect(await grade({ expected }, '{}', gold)).toMatchObject({ status: 'ok', reward: 0 });
    expect(await grade({ expected }, 'Ada', gold)).toMatchObject({ status: 'unparsed', reward: 0 });
  });

  it('compares as the field says', async () => {
    const fields = {
      name: { pointer: '/name', ignoreCase: true, weight: 3 },
      height: { pointer: '/height', tolerance: 0.1 },
    };
    const right = { name: 'Ada', height: 1.7 };
    expect(await grade({ expected, fields, weight: 2 }, '{"name": "ADA", "height": 1.75}', right)).toMatchObject({
      reward: 4,
    });
    expect(await grade({ expected, fields, weight: 2 }, '{"name": "ADA", "height": 1.9}', right)).toMatchObject({
      reward: 3,
    });
  });

  it('leaves a field out that the right object hasn’t, which is not the same as null', async () => {
    expect(await grade({ expected }, '{"name": "Ada"}', { name: 'Ada' })).toMatchObject({ reward: 0.5 });
    expect(await grade({ expected }, '{"name": null}', { name: null })).toMatchObject({ reward: 0.5 });
    expect(await grade({ expected }, '{}', { name: null })).toMatchObject({ reward: 0 });
  });

  it('takes a field that the schema takes, where there is no right object', async () => {
    const fields = { name: '/name', born: '/born' };
    expect(await grade({ schema: person, fields }, '{"name": "", "born": "1815-12-10", "x": 1}')).toMatchObject({
      reward: 0.5,
    });
  });

  it('makes an error of the data an error of the grader', async () => {
    const bad = (): unknown => JSON.parse('{');
    expect(await grade({ expected: bad }, '{}')).toMatchObject({ status: 'grader_error' });
  });

  it('refuses at construction what could only fail later', () => {
    const refused = (options: JsonFieldsOptions<Problem>) =>
      expect(() => jsonFields(options)).toThrow(expect.objectContaining({ code: 'invalid_argument' }));
    refused({ fields: {}, expected });
    refused({ fields: { a: 'a' }, expected });
    refused({ fields: { a: '/~2' }, expected });
    refused({ fields: { a: '/a' } });
    refused({ fields: { a: '/a' }, expected, schema: {} });
  });
});
