import { appendFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { LoopwrightError } from '@loopwright/protocol';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AlarmDecision } from '../guard/guard.js';
import { Bandit, copyEnvironment } from '../testing/bandit.js';
import { rejection } from '../testing/rejection.js';
import type { TrackedStep, Tracker } from '../tracking/tracker.js';
import { runGrpo } from '../training/grpo.js';
import { compareRuns } from './compare-runs.js';
import { findDamage } from './damage.js';
import { openRun, withRun } from './open-run.js';
import { plainConfig, withoutSecrets } from './plain-config.js';
import { findRuns, readRun, readSamples } from './read-run.js';
import type { RunSample } from './run-samples.js';

let directory: TemporaryDirectory;
let folder: string;

beforeEach(async () => {
  directory = await temporaryDirectory();
  folder = join(directory.path, 'runs', 'copy');
});

afterEach(() => directory[Symbol.asyncDispose]());

const config = { steps: 3, learningRate: 0.01 };

describe('the alarm that ends a run', () => {
  const onNotice = (): void => {};
  const options = { training: new Bandit(), steps: 3, maxTokens: 1, seed: 5, onNotice };
  const kept = async (folder: string): Promise<string[]> =>
    (await readRun(folder)).alarms.map(({ name, level, step }) => `${name} ${level} ${step}`);

  it('is kept once, be it told with a step or by the error alone', async () => {
    const told = join(directory.path, 'told');
    const onAlarm = (): AlarmDecision => 'stop';
    const stopped = withRun({ folder: told, config: {} }, (run) =>
      runGrpo({ ...options, environment: copyEnvironment, guard: { onAlarm }, onStep: run.onStep }),
    );
    expect(await rejection(stopped)).toMatchObject({ code: 'guard_stopped' });
    expect(await kept(told)).toEqual(['guard/all-truncated note 1']);

    const untold = join(directory.path, 'untold');
    const grade = (): never => {
      throw new Error('no such module');
    };
    const failed = withRun({ folder: untold, config: {} }, (run) =>
      runGrpo({ ...options, environment: { ...copyEnvironment, grade }, onStep: run.onStep }),
    );
    expect(await rejection(failed)).toMatchObject({ code: 'grader_failed', cause: { message: 'no such module' } });
    expect(await kept(untold)).toEqual(['guard/grader-failing stop 1']);
  });
});

describe('a run folder', () => {
  it('keeps what a run was, its numbers and its samples', async () => {
    const problems = [{ id: '3=', question: '3=', answer: '3' }];
    await withRun(
      {
        folder,
        config: { ...config, advantages: Math.max, apiKey: 'SECRET' },
        seeds: { seed: 5 },
        data: { train: problems },
      },
      (run) =>
        runGrpo({
          training: new Bandit(),
          environment: copyEnvironment,
          steps: 3,
          maxTokens: 1,
          seed: 5,
          onStep: run.onStep,
        }),
    );
    const { record, state, steps, alarms } = await readRun(folder);
    expect(alarms).toMatchObject([{ name: 'guard/all-truncated', level: 'note', step: 1, times: 1 }]);
    expect(record).toMatchObject({
      name: 'copy',
      config: { ...config, advantages: '[function max]', apiKey: '[redacted]' },
      seeds: { seed: 5 },
      data: { train: { rows: 1, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) } },
      versions: { node: process.version, packages: { '@loopwright/loops': expect.any(String) } },
      command: { cwd: process.cwd() },
    });
    expect([state, steps.map(({ step }) => step)]).toEqual(['done', [1, 2, 3]]);
    expect(await findDamage({ folder, state })).toEqual([]);
    expect(steps[0]!.metrics).toHaveProperty('reward/mean');
    const samples: RunSample[] = [];
    for await (const sample of readSamples(folder)) samples.push(sample);
    expect(samples).toHaveLength(3 * 8 * 8);
    expect(samples[0]).toMatchObject({
      step: 1,
      type: 'train',
      status: expect.stringMatching(/ok|unparsed/),
      segments: [{ prompt: expect.any(Array), stop: 'length' }],
    });
    expect(samples[0]!.segments[0]!.tokens).toHaveLength(samples[0]!.segments[0]!.logprobs.length);
    expect(await readFile(join(folder, 'metrics.jsonl'), 'utf8')).not.toContain('question');
    const files = ['alarms.jsonl', 'metrics.jsonl', 'problems.jsonl', 'run.json', 'samples.jsonl'];
    expect(await readdir(folder)).toEqual(files);
  });

  it('is a new one each time', async () => {
    await withRun({ folder, config }, async () => undefined);
    const second = await openRun({ folder, config });
    await second.finish();
    expect(second.folder).toBe(`${folder}-2`);
    expect((await findRuns(directory.path)).runs.map(({ record }) => record.name)).toEqual(['copy', 'copy-2']);
  });

  it('says how it ended', async () => {
    const refused = new Error('PROMPT');
    await expect(withRun({ folder, config }, () => Promise.reject(refused))).rejects.toBe(refused);
    expect((await readRun(folder)).record).toMatchObject({ status: 'failed', error: { message: 'Error' } });
    const stopped = new LoopwrightError({ code: 'cancelled', message: 'stopped' });
    await expect(withRun({ folder, config }, () => Promise.reject(stopped))).rejects.toBe(stopped);
    expect((await readRun(`${folder}-2`)).state).toBe('interrupted');
  });

  it('has one writer; a writer that is gone is no hindrance', async () => {
    const run = await openRun({ folder, config });
    await expect(openRun({ folder, config, resumeAfter: 0 })).rejects.toMatchObject({ code: 'run_in_use' });
    expect((await readRun(folder)).state).toBe('running');
    await run.finish();
    const record = await readFile(join(folder, 'run.json'), 'utf8');
    await writeFile(join(folder, 'run.json'), record.replace('"done"', '"running"'));
    await writeFile(join(folder, 'run.lock'), JSON.stringify({ pid: 2 ** 22 + 1, host: hostname(), token: 'gone' }));
    expect((await readRun(folder)).state).toBe('killed');
    await (await openRun({ folder, config, resumeAfter: 0 })).finish();
    expect((await readRun(folder)).state).toBe('done');
  });

  it('goes on after a step, without what came later or was half written', async () => {
    const first = await openRun({ folder, config });
    for (let step = 1; step <= 3; step++) await first.step(step, { 'loss/mean': step });
    await first.finish('interrupted');
    await appendFile(join(folder, 'metrics.jsonl'), '{"step":4,"type":"step-e');
    expect(await findDamage({ folder, state: 'killed' })).toEqual([]);
    expect(await findDamage({ folder, state: 'done' })).toEqual([{ file: 'metrics.jsonl', lines: 1, first: 4 }]);
    expect(await readRun(folder)).toMatchObject({ steps: [{ step: 1 }, { step: 2 }, { step: 3 }] });
    const second = await openRun({ folder, config: { ...config, steps: 9 }, resumeAfter: 2 });
    expect(second.id).toBe(first.id);
    await second.step(3, { 'loss/mean': 30 });
    await second.finish();
    const { steps, record } = await readRun(folder);
    expect(steps.map(({ metrics }) => metrics['loss/mean'])).toEqual([1, 2, 30]);
    expect(record.resumed).toMatchObject([{ afterStep: 2, changed: ['config.steps'] }]);
  });

  it('counts what was used since it began, and what that costs', async () => {
    let sampled = 1_000_000;
    const usage = async () => [{ baseModel: 'm', prefillTokens: 0, sampleTokens: sampled, trainingTokens: 0 }];
    const prices = { currency: 'EUR', models: { m: { prefill: 1, sample: 2, training: 3 } } };
    const run = await openRun({ folder, config, usage, prices });
    sampled += 500_000;
    await run.step(1, { 'loss/mean': 1 });
    const { usage: used, cost } = await run.finish();
    expect(used).toEqual([{ baseModel: 'm', prefillTokens: 0, sampleTokens: 500_000, trainingTokens: 0 }]);
    expect(cost).toEqual({ currency: 'EUR', total: 1, unpriced: [] });
    expect((await readRun(folder)).steps[0]!.metrics).toMatchObject({
      'usage/sample_tokens': 500_000,
      'cost/total': 1,
    });
  });

  it('leaves out numbers that are none, and refuses names that the line has', async () => {
    const run = await openRun({ folder, config });
    await run.step(1, { 'loss/mean': Number.NaN, 'loss/sum': 1 });
    await expect(run.step(2, { time: 1 })).rejects.toThrow('metrics.time');
    await expect(run.step(-1, {})).rejects.toThrow('a whole number from 0');
    await run.finish();
    expect(run.warnings).toEqual(['step 1: 1 of 2 metrics were not finite and are left out']);
    expect((await readRun(folder)).steps[0]!.metrics).toEqual({ 'loss/sum': 1 });
    await expect(run.step(3, {})).rejects.toMatchObject({ code: 'disposed' });
  });

  it('with a damaged record is told of, and hides no other', async () => {
    await withRun({ folder, config }, async () => undefined);
    const broken = join(directory.path, 'runs', 'broken');
    await mkdir(broken);
    await writeFile(join(broken, 'run.json'), '{"format":2}');
    const found = await findRuns(directory.path);
    expect(found.runs).toHaveLength(1);
    expect(found.broken).toMatchObject([{ folder: broken, error: { code: 'data_invalid' } }]);
    await expect(readRun(join(directory.path, 'none'))).rejects.toMatchObject({ code: 'not_found' });
  });
});

it('a tracker that fails stops nothing, and what it lost is said', async () => {
  const seen: TrackedStep[] = [];
  const flaky: Tracker = {
    name: 'flaky',
    start: () => ({ reference: 'abc', link: 'http://127.0.0.1/abc' }),
    step: (step) => {
      if (step.step === 2) throw new LoopwrightError({ code: 'internal', message: 'gone' });
      seen.push(step);
    },
    finish: () => ({ sent: seen.length, lost: 0 }),
  };
  const run = await openRun({ folder, config, trackers: [flaky] });
  for (let step = 1; step <= 3; step++) await run.step(step, { 'loss/mean': step });
  const { trackers } = await run.finish();
  expect(trackers).toEqual({
    flaky: { reference: 'abc', link: 'http://127.0.0.1/abc', sent: 2, lost: 1, problem: 'gone' },
  });
  expect(run.warnings).toEqual(['flaky: 1 step not sent (gone)']);
  expect((await readRun(folder)).steps).toHaveLength(3);
});

it('of an error of somebody else’s tracker only the class is told: its message may hold a password', async () => {
  const throws = (): never => {
    throw new TypeError('http://me:SECRET@127.0.0.1/ refused');
  };
  const warnings: string[] = [];
  const onWarning = (text: string) => void warnings.push(text);
  const late = { name: 'late', start: () => ({}), step: throws, finish: throws };
  const never = { name: 'never', start: throws, step: throws, finish: throws };
  const run = await openRun({ folder, config, trackers: [late, never], onWarning });
  await run.step(1, { 'loss/mean': 1 });
  await run.finish();
  expect(warnings).toEqual([
    'never: could not be started (TypeError); the run goes on without it',
    'late: 1 step not sent (TypeError)',
    'never: 1 step not sent (TypeError)',
  ]);
  expect(await readFile(join(folder, 'run.json'), 'utf8')).not.toContain('SECRET');
});

it('runs are compared at the steps that both have', async () => {
  const losses = { a: [4, 2, 1], b: [4, 3] };
  for (const [name, values] of Object.entries(losses)) {
    await withRun(
      { folder: join(directory.path, name), config: { ...config, steps: values.length }, seeds: { seed: 1 } },
      async (run) => {
        for (const [i, value] of values.entries()) await run.step(i + 1, { 'loss/mean': value, [`only/${name}`]: 1 });
      },
    );
  }
  const [a, b] = await Promise.all([readRun(join(directory.path, 'a')), readRun(join(directory.path, 'b'))]);
  expect(compareRuns(a, b)).toEqual({
    changes: [{ path: 'config.steps', a: 3, b: 2 }],
    metrics: [
      { name: 'loss/mean', n: 2, meanA: 3, meanB: 3.5, step: 2, lastA: 2, lastB: 3, differing: 1, firstDifference: 2 },
    ],
    onlyA: ['only/a'],
    onlyB: ['only/b'],
  });
});

it('settings are kept without secrets, clients and data', () => {
  class Client {}
  expect(
    plainConfig({
      a: undefined,
      n: Number.POSITIVE_INFINITY,
      maxTokens: 5,
      token: 't',
      hfToken: 'x',
      c: new Client(),
      rows: Array(300).fill('row'),
      url: new URL('http://u:p@h/x?k=1'),
    }),
  ).toEqual({
    n: 'Infinity',
    maxTokens: 5,
    token: '[redacted]',
    hfToken: '[redacted]',
    c: '[Client]',
    rows: '[300 items]',
    url: 'http://h/x',
  });
  expect(withoutSecrets(['train.ts', '--api-key', 'k', '--token=t', '--max-tokens', '8'])).toEqual([
    ...['train.ts', '--api-key', '[redacted]', '--token=[redacted]', '--max-tokens', '8'],
  ]);
});
