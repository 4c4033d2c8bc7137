import fc from 'fast-check';
import { expect, test } from 'vitest';
import { datasetOf } from './dataset.js';
import { jsonlSource, textSource } from './jsonl-source.js';
import type { JsonRow, RowError } from './row.js';
import type { OnRowError, ReadingReport } from './tally.js';

const file = 't.jsonl';
const of = (text: string, idField?: string) =>
  datasetOf([textSource(text, { file })], { onReport: () => undefined, ...(idField === undefined ? {} : { idField }) });

async function read(text: string, onRowError: OnRowError = 'skip') {
  const reading = of(text).read({ onRowError });
  const rows: JsonRow[] = [];
  for await (const { row } of reading) rows.push(row);
  return { rows, report: reading.report() };
}

const addsUp = ({ lines, rows, errorCount, blank, elsewhere }: ReadingReport): boolean =>
  lines === rows + errorCount + blank + elsewhere;

const errorsOf = async (text: string): Promise<readonly RowError[]> => (await read(text)).report.errors;

test('a byte-order mark, CRLF, blank lines and a last line without newline are no part of the rows', async () => {
  const { rows, report } = await read('\ufeff{"a":1}\r\n\r\n  \n{"a":2}');
  expect(rows).toEqual([{ a: 1 }, { a: 2 }]);
  expect(report).toMatchObject({ lines: 4, rows: 2, blank: 2, errorCount: 0, complete: true });
});

test('an empty text has no rows, and says so without an error', async () => {
  expect((await read('')).report).toMatchObject({ lines: 0, rows: 0, complete: true });
});

test('a cut line, a list, a key that is there twice and NaN are errors with line and column; the others are read', async () => {
  const { rows, report } = await read('{"a":1}\n{"a":"cu\n[1]\n{"a":1,"a":2}\n{"b":{"c":NaN}}\n{"a":5}\n');
  expect(rows).toEqual([{ a: 1 }, { a: 5 }]);
  expect(addsUp(report)).toBe(true);
  expect(report.errors.map(({ at, field, got }) => [at.line, at.column, field, got])).toEqual([
    [2, 9, 'a', 'the end of the line'],
    [3, 1, undefined, 'a list of 1'],
    [4, 8, 'a', 'a key that is there twice'],
    [5, 11, 'b.c', 'NaN'],
  ]);
  expect(report.errors[0]!.excerpt).toContain('"cu');
  expect(JSON.stringify(report.errors)).not.toContain('cu');
});

test('the first error stops the reading unless the caller says otherwise', async () => {
  await expect(read('{"a":1}\n[]\n[]', 'stop')).rejects.toMatchObject({
    code: 'row_invalid',
    message: expect.stringContaining('t.jsonl, line 2, column 1: expected a JSON object, got a list of 0') as string,
  });
});

test('errors are collected up to a number, or to the end', async () => {
  await expect(read('[]\n[]\n[]\n', { collect: 2 })).rejects.toThrow(
    /line 1.*\n.*line 2.*\n2 rows can't be used so far/,
  );
  await expect(read('[]\n{}\n[]\n', { collect: 9 })).rejects.toThrow(/line 3.*\n2 rows can't be used;/);
});

test.each([{ collect: 0 }, { collect: 1.5 }, { collect: Number.NaN }])('a policy of %o is refused', async (policy) => {
  await expect(read('', policy)).rejects.toMatchObject({ code: 'invalid_argument' });
});

test('bytes that are no UTF-8 are an error where they stand, not replaced', async () => {
  const bytes = Uint8Array.from([...Buffer.from('{"a":"é'), 0xff, ...Buffer.from('"}\n{"a":1}')]);
  const source = jsonlSource(
    async function* () {
      yield bytes;
    },
    { file },
  );
  const reading = datasetOf([source], { onReport: () => undefined }).read({ onRowError: 'skip' });
  const rows: unknown[] = [];
  for await (const { row } of reading) rows.push(row);
  expect(rows).toEqual([{ a: 1 }]);
  expect(reading.report().errors).toMatchObject([{ at: { line: 1, column: 8 }, expected: 'UTF-8' }]);
});

test('numbers that would be rounded and halves of surrogate pairs are errors', async () => {
  const errors = await errorsOf('{"n":12345678901234567890}\n{"n":1e999}\n{"s":"\\ud800"}\n{"s":"\\ud83d\\ude00"}');
  expect(errors.map(({ at, field }) => [at.line, field])).toEqual([
    [1, 'n'],
    [2, 'n'],
    [3, 's'],
  ]);
});

test('keys of the prototype are fields as others', async () => {
  const { rows } = await read('{"__proto__":{"x":1},"constructor":2}');
  expect(Object.keys(rows[0]!)).toEqual(['__proto__', 'constructor']);
  expect((await errorsOf('{"__proto__":1,"__proto__":2}'))[0]).toMatchObject({ got: 'a key that is there twice' });
});

test('deep nesting is an error, not an overflow', async () => {
  expect(await errorsOf(`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)).toMatchObject([{ at: { line: 1 } }]);
});

test('lines above the limit are errors, and reading goes on after them', async () => {
  const source = textSource(`{"a":"${'x'.repeat(500)}"}\n{"a":1}\n`, { file, maxLineBytes: 100 });
  const reading = datasetOf([source], { onReport: () => undefined }).read({ onRowError: 'skip' });
  const rows: unknown[] = [];
  for await (const { row } of reading) rows.push(row);
  expect(rows).toEqual([{ a: 1 }]);
  expect(reading.report().errors).toMatchObject([{ expected: 'a line of at most 100 bytes', got: '508' }]);
});

test('ids are those of the content, whatever the order of keys and the spacing', async () => {
  const ids: string[] = [];
  for await (const { id } of of('{"a":1,"b":[2]}\n{ "b": [2.0], "a": 1 }\n{"a":1,"b":[3]}')) ids.push(id);
  expect(ids[0]).toMatch(/^[0-9a-f]{32}$/);
  expect(ids[1]).toBe(ids[0]);
  expect(ids[2]).not.toBe(ids[0]);
});

test('an id that was there before, and a missing one, are errors', async () => {
  const reading = of('{"id":"x"}\n{"id":7}\n{"id":"x"}\n{"id":null}\n{}', 'id').read({ onRowError: 'skip' });
  const ids: string[] = [];
  for await (const { id } of reading) ids.push(id);
  expect(ids).toEqual(['x', '7']);
  expect(reading.report().errors).toMatchObject([
    { at: { line: 3 }, field: 'id', got: 'that of line 1' },
    { at: { line: 4 }, got: 'null' },
    { at: { line: 5 }, got: 'nothing' },
  ]);
});

test('an abort ends the reading with cancelled', async () => {
  const abort = new AbortController();
  const rows = of('{"a":1}\n{"a":2}').read({ signal: abort.signal });
  abort.abort();
  await expect(rows[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'cancelled' });
});

test('rows and counts are the same in whatever pieces the bytes come', async () => {
  const line = fc.oneof(
    fc
      .dictionary(fc.string({ maxLength: 6 }), fc.string({ unit: 'grapheme', maxLength: 20 }))
      .map((v) => JSON.stringify(v)),
    fc.constantFrom('', '  ', '[1]', '{"a":', '{"a":1,"a":1}'),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { maxLength: 12 }),
      fc.constantFrom('\n', '\r\n'),
      fc.integer({ min: 1, max: 17 }),
      async (lines, end, size) => {
        const text = lines.join(end);
        const bytes = new TextEncoder().encode(text);
        const cut = jsonlSource(
          async function* () {
            for (let i = 0; i < bytes.length; i += size) yield bytes.subarray(i, i + size);
          },
          { file },
        );
        const reading = datasetOf([cut], { onReport: () => undefined }).read({ onRowError: 'skip' });
        const rows: JsonRow[] = [];
        for await (const { row } of reading) rows.push(row);
        const whole = await read(text);
        expect(rows).toEqual(whole.rows);
        expect(reading.report()).toEqual(whole.report);
        expect(addsUp(whole.report)).toBe(true);
      },
    ),
    { numRuns: 60 },
  );
});

test('a line of millions of characters with a fault is looked through', async () => {
  const errors = await errorsOf(`{"a":"${'x'.repeat(8_000_000)}","a":1}`);
  expect(errors).toMatchObject([{ at: { line: 1, column: 8_000_009 }, got: 'a key that is there twice' }]);
});
