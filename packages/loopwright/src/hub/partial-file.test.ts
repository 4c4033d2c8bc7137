import { createHash } from 'node:crypto';
import { readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { partialBytes, releasePartial, removePartials, takePartial } from './partial-file.js';

const blob = 'f'.repeat(64);
const host = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);

let folder: TemporaryDirectory;

beforeEach(async () => {
  folder = await temporaryDirectory();
});

afterEach(() => folder[Symbol.asyncDispose]());

async function partOf(owner: string, { content = 'part', atMs = Date.now() } = {}): Promise<void> {
  const path = join(folder.path, `${blob}.partial${owner}`);
  await writeFile(path, content);
  await utimes(path, atMs / 1000, atMs / 1000);
}

it('of many claims at once one at most is granted, and what was there is kept', async () => {
  for (const content of [undefined, 'what was there']) {
    if (content !== undefined) await partOf('', { content });
    const claims = await Promise.all(Array.from({ length: 12 }, () => takePartial(folder.path, blob)));
    const taken = claims.flatMap((claim) => (claim.type === 'taken' ? [claim.path] : []));
    expect(taken.length).toBeLessThanOrEqual(1);
    const left = await readdir(folder.path);
    expect(left.length).toBeLessThanOrEqual(1);
    if (content !== undefined) expect(await readFile(join(folder.path, left[0]!), 'utf8')).toBe(content);
    for (const path of taken) await releasePartial(folder.path, { blob, path });
  }
});

it('the largest part is taken, whatever its age, and is nobody else’s then', async () => {
  await partOf('', { content: 'small' });
  await partOf(`-0badbeef-1-00000000`, { content: 'the larger one', atMs: Date.now() - 3_600_000 });
  expect(await partialBytes(folder.path, blob)).toBe(14);
  const taken = await takePartial(folder.path, blob);
  expect(taken.type).toBe('taken');
  expect(await readFile(taken.type === 'taken' ? taken.path : '', 'utf8')).toBe('the larger one');
  expect(await takePartial(folder.path, blob)).toEqual({ type: 'busy' });
  await removePartials(folder.path, blob);
  expect(await readdir(folder.path)).toHaveLength(1); // the one that is taken
});

it.each([
  ['another machine that writes', '0badbeef-1', 0, 'busy'],
  ['another machine that fell silent', '0badbeef-1', 3_600_000, 'taken'],
  ['this process', `${host}-${process.pid}`, 0, 'busy'],
  ['an earlier process of the same number', `${host}-${process.pid}`, 500_000, 'taken'],
  ['the process that started this one', `${host}-${process.ppid}`, 0, 'busy'],
])('a part of %s', async (_, owner, ageMs, outcome) => {
  await partOf(`-${owner}-00000000`, { atMs: Date.now() - ageMs });
  expect((await takePartial(folder.path, blob)).type).toBe(outcome);
});
