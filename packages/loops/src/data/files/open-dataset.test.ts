import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Dataset } from '../dataset.js';
import { openDataset } from './open-dataset.js';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'data-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function put(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

async function numbers(data: Dataset): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const { row } of data) found.push(row.n);
  return found;
}

const many = Array.from({ length: 5000 }, (_, n) => JSON.stringify({ n, text: 'x'.repeat(500) })).join('\n');

test('files, plain and gzipped, are read as one, again and again', async () => {
  const data = await openDataset([await put('a.jsonl', many), await put('b.jsonl.gz', gzipSync('{"n":-1}\n'))]);
  const expected = [...Array.from({ length: 5000 }, (_, n) => n), -1];
  expect(await numbers(data)).toEqual(expected);
  expect(await numbers(data)).toEqual(expected);
});

test('a gzip file of two members is read whole; a cut one and one that is none are refused', async () => {
  const two = await put('two.jsonl.gz', Buffer.concat([gzipSync('{"n":1}\n'), gzipSync('{"n":2}\n')]));
  expect(await numbers(await openDataset(two))).toEqual([1, 2]);
  const cut = await openDataset(await put('cut.jsonl.gz', gzipSync(many).subarray(0, -20)));
  await expect(numbers(cut)).rejects.toMatchObject({ code: 'data_invalid', details: { got: 'one that is cut' } });
  const none = await openDataset(await put('none.jsonl.gz', '{"n":1}'));
  await expect(numbers(none)).rejects.toMatchObject({ code: 'data_invalid' });
});

test('a missing file, a folder and another ending are refused by name', async () => {
  await expect(openDataset(join(folder, 'no.jsonl'))).rejects.toMatchObject({ code: 'not_found' });
  await expect(openDataset(folder)).rejects.toMatchObject({ code: 'invalid_argument' });
  await expect(openDataset(await put('x.csv', ''))).rejects.toMatchObject({ details: { got: '.csv' } });
  await expect(openDataset([])).rejects.toMatchObject({ code: 'invalid_argument' });
});

test('breaking off a reading closes the file', async () => {
  const data = await openDataset(await put('break.jsonl', many));
  for await (const { at } of data) {
    expect(at.line).toBe(1);
    break;
  }
  expect(await numbers(data)).toHaveLength(5000);
});
