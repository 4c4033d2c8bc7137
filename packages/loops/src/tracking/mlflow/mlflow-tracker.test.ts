/** Runs as an MLflow server has them. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openRun } from '../../runs/open-run.js';
import { readRun } from '../../runs/read-run.js';
import { alarmAt } from '../../testing/alarms.js';
import { FakeMlflow } from '../../testing/mlflow-server.js';
import { type MlflowOptions, mlflowTracker } from './mlflow-tracker.js';
import { nameFor, paramsOf } from './names.js';

let directory: TemporaryDirectory;
let server: FakeMlflow;
let uri: string;
beforeEach(async () => {
  directory = await temporaryDirectory();
  server = new FakeMlflow();
  uri = await server.start();
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await directory[Symbol.asyncDispose]();
});

const config = { steps: 3, loss: { name: 'cispo', beta: 0.1 }, list: [] };

async function open(options: Partial<MlflowOptions> = {}, more: object = {}) {
  const warnings: string[] = [];
  const tracker = mlflowTracker({ uri, experiment: 'math', endRetriesMs: [], ...options });
  const onWarning = (message: string): void => void warnings.push(message);
  const folder = join(directory.path, 'run');
  const run = await openRun({ folder, config, seeds: { seed: 7 }, trackers: [tracker], onWarning, ...more });
  return { warnings, folder: run.folder, run };
}

describe('a run on an MLflow server', () => {
  it('has settings as params, facts as tags, every number of every step, and how it ended', async () => {
    const { run, warnings } = await open();
    await run.step(1, { 'reward/mean': 0.25, 'loss:sum': -3 });
    await run.step(2, { 'validation/accuracy': 0.5 }, 'validation');
    const { trackers } = await run.finish();
    expect(trackers).toEqual({
      mlflow: { reference: 'run1', link: `${uri}/#/experiments/1/runs/run1`, sent: 2, lost: 0 },
    });
    expect([...server.experiments.keys()]).toEqual(['math']);
    const stored = server.runs.get('run1')!;
    expect([stored.name, stored.status]).toEqual(['run', 'FINISHED']);
    expect(Object.fromEntries(stored.params)).toEqual({
      steps: '3',
      'loss.name': 'cispo',
      'loss.beta': '0.1',
      list: '[]',
    });
    expect(stored.tags.get('loopwright.run')).toBe(run.id);
    expect(stored.tags.get('seed.seed')).toBe('7');
    expect(stored.metrics).toEqual([
      { key: 'reward/mean', value: 0.25, step: 1 },
      { key: 'loss:sum', value: -3, step: 1 },
      { key: 'validation/accuracy', value: 0.5, step: 2 },
    ]);
    expect(warnings).toEqual([]);
  });

  it('has its alarms as tags, the newest of each name, and as metrics of their levels', async () => {
    const { run } = await open();
    for (const step of [1, 11])
      await run.onStep({ type: 'step-end', step, metrics: { 'loss/mean': step }, alarms: [alarmAt(step)] });
    await run.alarms([alarmAt(12, 'stop')]);
    await run.finish('failed');
    const { metrics, tags } = server.runs.get('run1')!;
    expect(tags.get('guard/learning-rate')).toMatch(
      /^guard\/learning-rate \[stop\] at step 12 \(seen in 12 steps\): 0\.01/,
    );
    expect(metrics).toEqual([
      { key: 'loss/mean', value: 1, step: 1 },
      { key: 'guard/learning-rate', value: 2, step: 1 },
      { key: 'loss/mean', value: 11, step: 11 },
      { key: 'guard/learning-rate', value: 2, step: 11 },
      { key: 'guard/learning-rate', value: 3, step: 12 },
    ]);
  });

  it('that goes on is the same run, with changed settings as tags', async () => {
    const first = await open();
    await first.run.step(1, { 'loss/mean': 1 });
    await first.run.finish('interrupted');
    expect(server.runs.get('run1')?.status).toBe('KILLED');
    const second = await open({}, { config: { ...config, steps: 9 }, resumeAfter: 1, allowChanges: true });
    expect(server.runs.get('run1')?.status).toBe('RUNNING');
    await second.run.step(2, { 'loss/mean': 0.5 });
    await second.run.finish();
    expect([...server.runs.keys()]).toEqual(['run1']);
    const { params, tags, metrics, status } = server.runs.get('run1')!;
    expect([params.get('steps'), tags.get('resumed.steps'), tags.get('resumed.after_step'), status]).toEqual([
      '3',
      '9',
      '1',
      'FINISHED',
    ]);
    expect(metrics.map(({ step }) => step)).toEqual([1, 2]);
  });

  it('has more settings, and more steps at once, than one call may hold', async () => {
    const wide = Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`key${i}`, i]));
    const { run } = await open({}, { config: wide });
    const metrics = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`m/${i}`, i]));
    await Promise.all([1, 2, 3, 4, 5].map((step) => run.step(step, metrics)));
    await run.finish();
    expect(server.runs.get('run1')?.params.size).toBe(250);
    expect(server.runs.get('run1')?.metrics).toHaveLength(2000);
  });

  it('has other names where an older server takes no colons', async () => {
    server.takesColons = false;
    const { run } = await open();
    await run.step(1, { 'loss:sum': 1 });
    await run.finish();
    expect(server.runs.get('run1')?.metrics).toEqual([{ key: 'loss_sum', value: 1, step: 1 }]);
  });

  it('is warned of once while the server is down, and caught up with at the end', async () => {
    await server[Symbol.asyncDispose]();
    const back = new FakeMlflow();
    const wait = async (): Promise<void> => {
      await back.start(Number(new URL(uri).port));
      server = back;
    };
    const { run, warnings } = await open({ endRetriesMs: [1000], wait });
    for (let step = 1; step <= 3; step++) await run.step(step, { 'loss/mean': step });
    const { trackers } = await run.finish();
    expect(warnings).toEqual([
      `mlflow: ${uri}: not reached; the run goes on with its folder alone, and sending is tried again`,
    ]);
    expect(trackers?.mlflow).toMatchObject({ reference: 'run1', sent: 3, lost: 0 });
    expect(back.runs.get('run1')?.metrics.map(({ step }) => step)).toEqual([1, 2, 3]);
    expect(back.runs.get('run1')?.status).toBe('FINISHED');
  });

  it('that never came to be costs the run nothing but a warning', async () => {
    await server[Symbol.asyncDispose]();
    const { run, folder, warnings } = await open();
    await run.step(1, { 'loss/mean': 1 });
    const { status, trackers } = await run.finish();
    expect(status).toBe('done');
    expect(trackers).toEqual({ mlflow: { sent: 0, lost: 1, problem: `${uri}: not reached` } });
    expect(warnings.at(-1)).toBe(`mlflow: 1 step not sent (${uri}: not reached)`);
    expect((await readRun(folder)).steps).toHaveLength(1);
  });

  it('is made once, though an answer is lost on the way', async () => {
    let lost = 0;
    const flaky: typeof fetch = async (...call) => {
      const answer = await fetch(...call);
      if (String(call[0]).endsWith('runs/create') && lost++ === 0) throw new Error('reset');
      return answer;
    };
    const { run } = await open({ fetch: flaky, retryMs: 0 });
    await run.step(1, { 'loss/mean': 1 });
    await run.finish();
    expect(server.runs.size).toBe(1);
    expect(server.runs.get('run1')?.metrics).toHaveLength(1);
    expect(server.runs.get('run1')?.params.get('steps')).toBe('3');
  });

  it('says what to do about missing credentials, and keeps them from files, warnings and links', async () => {
    server.refuse = (_path, { authorization }) => (authorization === 'Bearer hush-hush' ? undefined : 401);
    const without = await open();
    expect(without.warnings).toEqual([expect.stringContaining('401 UNAUTHENTICATED; set MLFLOW_TRACKING_USERNAME')]);
    await without.run.finish();
    const { run, folder, warnings } = await open({ token: 'hush-hush' }, { folder: join(directory.path, 'other') });
    await run.finish();
    expect(warnings).toEqual([]);
    const written = await readFile(join(folder, 'run.json'), 'utf8');
    expect(written).not.toMatch(/hush/);
    server.refuse = (_path, { authorization }) =>
      authorization === `Basic ${Buffer.from('ann:hush').toString('base64')}` ? undefined : 401;
    const third = await open({ uri: uri.replace('//', '//ann:hush@') }, { folder: join(directory.path, 'third') });
    await third.run.finish();
    expect(third.warnings).toEqual([]);
    expect(JSON.stringify(third.run.record)).not.toContain('hush');
  });

  it('is refused at once for an address that is none', () => {
    for (const wrong of ['file:///tmp/mlruns', 'databricks', ''])
      expect(() => mlflowTracker({ uri: wrong })).toThrow('mlflow.uri');
  });
});

describe('names', () => {
  it('stay what they are where MLflow takes them, and are mended where it does not', () => {
    expect(['reward/mean', 'loss:sum', 'a b-c.d_e'].map((name) => nameFor(name))).toEqual([
      'reward/mean',
      'loss:sum',
      'a b-c.d_e',
    ]);
    expect(['../x', 'a//b', '/', 'ü$', 'loss:sum'].map((name) => nameFor(name, { colons: false }))).toEqual([
      'x',
      'a/b',
      '_',
      '__',
      'loss_sum',
    ]);
    expect(nameFor('x'.repeat(300))).toHaveLength(250);
  });

  it('of settings are their paths', () => {
    expect(paramsOf({ a: [1, { b: null }], c: {}, d: 'x'.repeat(7000) })).toEqual([
      ['a.0', '1'],
      ['a.1.b', 'null'],
      ['c', '{}'],
      ['d', `${'x'.repeat(5999)}…`],
    ]);
    expect(paramsOf(3)).toEqual([['config', '3']]);
  });
});
