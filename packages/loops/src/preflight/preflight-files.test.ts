import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readPassRates } from '../data/files/pass-rates.js';
import { openPreflightFiles } from './preflight-files.js';
import type { Preflight, PromptRate } from './words.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'preflight-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const rate = (id: string): PromptRate => ({
  ...{ id, n: 8, correct: 4, passRate: 0.5, sampled: 8, unparsed: 0, truncated: 0 },
  ...{ graderErrors: 0, promptTokens: 5, completionTokens: 16 },
});

it('keeps what was measured, also where the last line was cut off, and refuses other settings', async () => {
  const first = await openPreflightFiles(folder, { model: 'a' });
  await first.record(rate('one'));
  await appendFile(join(folder, 'progress.jsonl'), '{"id":"tw');
  const second = await openPreflightFiles(folder, { model: 'a' });
  expect([...second.measured.keys()]).toEqual(['one']);
  await second.record(rate('two'));
  const third = await openPreflightFiles(folder, { model: 'a' });
  expect(third.measured).toEqual(
    new Map([
      ['one', rate('one')],
      ['two', rate('two')],
    ]),
  );
  await expect(openPreflightFiles(folder, { model: 'b' })).rejects.toMatchObject({ code: 'invalid_argument' });
});

it('writes pass rates that curricula read, and the problems worth training on', async () => {
  const files = await openPreflightFiles(folder, {});
  const useful = [{ id: 'one', question: '1=', answer: '1' }];
  const result = { report: {}, rates: [rate('one')], useful } as unknown as Preflight<(typeof useful)[number]>; // true of what is written
  const paths = await files.write(result);
  expect(await readPassRates(paths.rates)).toEqual(new Map([['one', 0.5]]));
  expect(JSON.parse(await readFile(paths.useful, 'utf8'))).toEqual(useful[0]);
});
