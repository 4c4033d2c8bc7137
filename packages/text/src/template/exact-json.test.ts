import fc from 'fast-check';
import { expect, it } from 'vitest';
import { JsonNumber, JsonObject, parseExactJson, printExactJson } from './exact-json.js';

it.each(['2.0', '1.50', '-0', '-0.0', '1e400', '1E5', '1e-7', '12345678901234567890', '0.1000000000000000055'])(
  'keeps %s as it was written',
  (text) => {
    expect(parseExactJson(` ${text}\n`)).toEqual(new JsonNumber(text));
    expect(printExactJson(parseExactJson(`{"a": [${text}, {"b": ${text}}]}`))).toBe(`{"a":[${text},{"b":${text}}]}`);
  },
);

it('gives plain data where that prints as it was written', () => {
  for (const value of [
    0,
    -1,
    1.5,
    0.1,
    1e-5,
    123456789012345,
    '1.0',
    ' {"a": 2.0} ',
    true,
    null,
    [],
    {},
    { a: [1, { b: 'x' }] },
  ]) {
    const text = typeof value === 'number' && value === 1e-5 ? '1e-05' : JSON.stringify(value);
    expect(parseExactJson(text)).toEqual(value);
  }
});

it('keeps the order of keys, also of those that look like numbers; of a key that stands twice the last counts', () => {
  const text = '{"b":1,"10":2,"9":{"2":1.0,"1":[]}}';
  expect(parseExactJson(text)).toBeInstanceOf(JsonObject);
  expect(printExactJson(parseExactJson(text))).toBe(text);
  expect(parseExactJson('{"a": 1.0, "a": 2}')).toEqual({ a: 2 });
  expect(Object.keys(parseExactJson('{"__proto__": 1.0}') as object)).toEqual(['__proto__']);
  expect(Object.keys(parseExactJson('{"__proto__": {"1": 1.0, "a": 2}, "x": 1}') as object)).toEqual([
    '__proto__',
    'x',
  ]);
});

it.each(['', '{', '01', '.5', 'NaN', 'Infinity', '{"a": 2.0,}', '[1.0] x'])('refuses %j, as JSON does', (text) => {
  expect(() => parseExactJson(text)).toThrow(SyntaxError);
});

it('reads and prints any JSON as the same text', () => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      const text = printExactJson(parseExactJson(json));
      expect(JSON.parse(text)).toEqual(JSON.parse(json));
      expect(printExactJson(parseExactJson(text))).toBe(text);
    }),
    { numRuns: 300, seed: 5 },
  );
});
