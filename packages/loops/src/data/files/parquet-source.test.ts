import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDataset } from './open-dataset.js';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parquet-'));
});
afterAll(() => rm(folder, { recursive: true }));

type Columns = Parameters<typeof parquetWriteBuffer>[0]['columnData'];

async function put(name: string, columnData: Columns, rowGroupSize?: number): Promise<string> {
  const path = join(folder, name);
  const groups = rowGroupSize === undefined ? {} : { rowGroupSize };
  await writeFile(path, new Uint8Array(parquetWriteBuffer({ columnData, ...groups })));
  return path;
}

const silent = { onReport: () => undefined };

test('rows of all groups are read in order, with nested values, and int64 as numbers', async () => {
  const questions = Array.from({ length: 25 }, (_, n) => `é ${n}`);
  const path = await put(
    'a.parquet',
    [
      { name: 'question', data: questions, type: 'STRING' },
      { name: 'answer', data: questions.map((_, n) => BigInt(n)), type: 'INT64' },
      { name: 'extra', data: questions.map((_, n) => ({ steps: [n, { deep: 'x' }] })), type: 'JSON' },
    ],
    10,
  );
  const data = await openDataset(path);
  expect(await data.format()).toMatchObject({ format: 'rl_prompt' });
  let line = 0;
  for await (const { prompt, answer, row, at } of data.as('rl_prompt')) {
    expect({ prompt, answer, at }).toEqual({
      prompt: `é ${line}`,
      answer: String(line),
      at: { file: path, line: line + 1 },
    });
    expect(row).toMatchObject({ answer: line, extra: { steps: [line, { deep: 'x' }] } });
    line += 1;
  }
  expect(line).toBe(25);
});

test('an integer that would be rounded, NaN and bytes are row errors at their columns', async () => {
  const path = await put('bad.parquet', [
    { name: 'n', data: [1n, 2n ** 60n, 3n, 4n], type: 'INT64' },
    { name: 'x', data: [1, 1, Number.NaN, 1], type: 'DOUBLE' },
    { name: 'b', data: [null, null, null, Uint8Array.from([0xff])], type: 'BYTE_ARRAY' },
  ]);
  const reading = (await openDataset(path, silent)).read({ onRowError: 'skip' });
  const rows: unknown[] = [];
  for await (const { row } of reading) rows.push(row);
  expect(rows).toEqual([{ n: 1, x: 1, b: null }]);
  expect(reading.report()).toMatchObject({ lines: 4, rows: 1, errorCount: 3 });
  expect(reading.report().errors.map(({ at, field }) => [at.line, field])).toEqual([
    [2, 'n'],
    [3, 'x'],
    [4, 'b'],
  ]);
});

test('a file that is none is refused by name', async () => {
  const none = join(folder, 'none.parquet');
  await writeFile(none, 'PAR1 no');
  const read = async (path: string) => {
    for await (const _ of await openDataset(path, silent)) expect.unreachable('a row was read');
  };
  await expect(read(none)).rejects.toMatchObject({ code: 'data_invalid', details: { field: none } });
});
