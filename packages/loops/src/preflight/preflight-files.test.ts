import { appendFile, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readPassRates } from '../data/files/pass-rates.js';
import { openPreflightFiles, type PreflightFiles } from './preflight-files.js';
import type { FormRate, MeasuredSteps, Preflight, PromptRate } from './words.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'preflight-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const rate = (id: string): PromptRate => ({
  ...{ id, n: 8, correct: 4, passRate: 0.5, sampled: 8, unparsed: 0, truncated: 0 },
  ...{ graderErrors: 0, promptTokens: 5, completionTokens: 16, prefillTokens: 5, trainingTokens: 48 },
});

const step: MeasuredSteps = {
  ...{ n: 3, groups: 8, groupSize: 8, rank: 16, sampledTokens: 64, trainingTokens: 640 },
  ...{ collectMs: 100, graderMs: 0, passMs: 200, updateMs: 50, minMs: 340, maxMs: 360 },
};

const form: FormRate = {
  ...{ id: 'one', mostDraws: 16, readable: 7, correct: 3, neverRead: 1 },
  ...{ graderErrors: 0, drawnAgain: 20, sampledTokens: 40, prefillTokens: 75 },
};

/** Opened, used, and closed again. */
async function inFolder<T>(
  settings: object,
  use: (files: PreflightFiles) => T | Promise<T>,
  fresh = false,
): Promise<T> {
  await using files = await openPreflightFiles(folder, { ...settings }, { fresh });
  return await use(files);
}

it('keeps what was measured, also where the last line was cut off', async () => {
  const a = { model: 'a' };
  await inFolder(a, (files) => files.record(rate('one')));
  await appendFile(join(folder, 'progress.jsonl'), '{"id":"tw');
  await inFolder(a, async (files) => {
    expect([...files.measured.keys()]).toEqual(['one']);
    expect(files.step).toBeUndefined();
    await files.record(rate('two'));
    await files.recordStep(step);
    await files.recordForm(form);
  });
  await inFolder(a, (files) => {
    expect([...files.measured.values()]).toEqual([rate('one'), rate('two')]);
    expect(files.step).toEqual(step);
    expect([...files.forms.values()]).toEqual([form]);
  });
});

it('does not write over measurements that it can’t read', async () => {
  await mkdir(join(folder, 'progress.jsonl'));
  await expect(inFolder({}, () => undefined)).rejects.toMatchObject({
    code: 'invalid_argument',
    details: { field: join(folder, 'progress.jsonl'), got: 'EISDIR' },
  });
});

it('refuses measurements of other settings, unless they are to be forgotten', async () => {
  await inFolder({ model: 'a' }, (files) => files.record(rate('one')));
  const other = { model: 'b' };
  await expect(inFolder(other, () => 0)).rejects.toMatchObject({
    code: 'invalid_argument',
    details: { remedy: expect.stringContaining('--fresh') },
  });
  expect(await inFolder(other, ({ measured }) => measured.size, true)).toBe(0);
});

it('is one process’s at a time', async () => {
  await inFolder({}, () => expect(openPreflightFiles(folder, {})).rejects.toMatchObject({ code: 'run_in_use' }));
  await inFolder({}, ({ measured }) => expect(measured.size).toBe(0));
});

it('writes pass rates that curricula read, and the problems worth training on', async () => {
  await using files = await openPreflightFiles(folder, {});
  const useful = [{ id: 'one', question: '1=', answer: '1' }];
  const result = { report: {}, rates: [rate('one')], useful } as unknown as Preflight<(typeof useful)[number]>; // true of what is written
  const paths = await files.write(result);
  expect(await readPassRates(paths.rates)).toEqual(new Map([['one', 0.5]]));
  expect(JSON.parse(await readFile(paths.useful, 'utf8'))).toEqual(useful[0]);
});
