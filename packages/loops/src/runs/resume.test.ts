/** Runs that are gone on with: from which checkpoint, with which settings, and what is said where it can't be. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readCheckpoints } from './checkpoint-file.js';
import { type OpenRunOptions, openRun } from './open-run.js';
import { readRun } from './read-run.js';
import { type RunCheckpointsOptions, runCheckpoints } from './run-checkpoints.js';

let directory: TemporaryDirectory;
let folder: string;

beforeEach(async () => {
  directory = await temporaryDirectory();
  folder = join(directory.path, 'runs', 'math');
});

afterEach(() => directory[Symbol.asyncDispose]());

const config = { steps: 5, learningRate: 0.01, prompt: 'Solve the following.' };

/** Saves states by number, and notes which were deleted. */
function states() {
  const deleted: string[] = [];
  let saved = 0;
  return {
    deleted,
    training: { saveState: async () => ({ modelPackageArn: `arn:${++saved}` }) },
    deleteState: async (arn: string) => void deleted.push(arn),
  };
}

type Kept = Pick<RunCheckpointsOptions, 'training' | 'deleteState' | 'listStates' | 'every' | 'keep'>;

/** Steps `from` to `to`, each with a checkpoint but those in `without`; the process then dies. */
async function train(
  options: Partial<OpenRunOptions> & {
    readonly from: number;
    readonly to: number;
    readonly without?: readonly number[];
  },
  kept: Kept,
) {
  const { from, to, without = [], ...rest } = options;
  const run = await openRun({ folder, config, ...rest });
  const checkpoints = await runCheckpoints(run, kept);
  for (let step = from; step <= to; step++) {
    await run.step(step, { 'loss/mean': step });
    if (!without.includes(step))
      await checkpoints.save({ loop: 'toy', step, state: { next: step } }, { signal: new AbortController().signal });
  }
  return { run, checkpoints };
}

describe('a run that is gone on with', () => {
  it('goes on after its newest checkpoint, and drops what came later', async () => {
    const kept = states();
    await (await train({ from: 1, to: 4, without: [1, 4] }, kept)).run.finish('interrupted');
    const { run, checkpoints } = await train({ resume: true, from: 4, to: 4, without: [4] }, kept);
    expect(run.checkpoint).toMatchObject({ step: 3, modelPackageArn: 'arn:2' });
    expect(checkpoints.resumed).toEqual({ loop: 'toy', step: 3, state: { next: 3 } });
    expect(checkpoints.note?.()).toBe('checkpoint after step 3');
    await run.finish();
    const { steps, record } = await readRun(folder);
    expect(steps.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
    expect(record.resumed).toMatchObject([{ afterStep: 3, command: { argv: expect.any(Array) } }]);
  });

  it('keeps the problems that it met for as long as it keeps the checkpoints that trained on them', async () => {
    const group = (id: string) => ({ problem: { id, question: `${id}?` }, rollouts: [] });
    const first = await openRun({ folder, config });
    for (const step of [1, 2]) await first.samples(step, [group(`p${step}`)]);
    await first.finish('interrupted');
    const met = async () => (await readFile(join(folder, 'problems.jsonl'), 'utf8')).trim().split('\n').length;
    await writeFile(join(folder, 'checkpoint.json'), '{');
    await expect(openRun({ folder, config, resumeAfter: 1 })).rejects.toMatchObject({ code: 'data_invalid' });
    expect(await met()).toBe(2);
    await rm(join(folder, 'checkpoint.json'));
    await (await openRun({ folder, config, resumeAfter: 1 })).finish();
    expect(await met()).toBe(1);
  });

  it('without a checkpoint begins again, in the same folder', async () => {
    await (await train({ from: 1, to: 2, without: [1, 2] }, states())).run.finish('interrupted');
    const { run, checkpoints } = await train({ resume: true, from: 1, to: 1, without: [1] }, states());
    expect([run.checkpoint, checkpoints.resumed]).toEqual([undefined, undefined]);
    await run.finish();
    expect((await readRun(folder)).steps.map(({ step }) => step)).toEqual([1]);
  });

  it('keeps the last checkpoints, and deletes older states but the one it began with', async () => {
    const kept = states();
    await (await train({ from: 1, to: 4 }, kept)).run.finish('interrupted');
    expect(kept.deleted).toEqual(['arn:1', 'arn:2']);
    const { run } = await train({ resume: true, from: 5, to: 8 }, kept);
    expect([...new Set(kept.deleted)]).toEqual(['arn:1', 'arn:2', 'arn:3', 'arn:5', 'arn:6']);
    await run.finish('interrupted');
    const file = await readCheckpoints(folder);
    expect(file.checkpoints.map(({ step }) => step)).toEqual([8, 7]);
    expect(file.discarded).toContain('arn:4');
  });

  it('deletes what its session saved and a kill left without a record, also where it is killed again before', async () => {
    const kept = states();
    await (await train({ from: 1, to: 2 }, kept)).run.finish('interrupted');
    const left = { ...kept, listStates: async () => ['arn:1', 'arn:2', 'arn:left'] };
    const again = await train({ resume: true, from: 3, to: 3, without: [3] }, left);
    expect(kept.deleted).toEqual([]);
    await again.run.finish('interrupted');
    const { run } = await train({ resume: true, from: 3, to: 3 }, { ...kept, listStates: async () => [] });
    expect(kept.deleted).toEqual(['arn:left', 'arn:1']);
    await run.finish();
  });

  it('goes on where the server does not tell what it has', async () => {
    const kept = states();
    await (await train({ from: 1, to: 2 }, kept)).run.finish('interrupted');
    const warnings: string[] = [];
    const listStates = async () => Promise.reject(new Error('no answer'));
    const options = { resume: true, from: 3, to: 3, onWarning: (line: string) => void warnings.push(line) };
    await (await train(options, { ...kept, listStates })).run.finish();
    expect(warnings).toEqual([expect.stringContaining('states without a record')]);
    expect((await readCheckpoints(folder)).checkpoints.map(({ step }) => step)).toEqual([3, 2]);
  });

  it('chooses an older checkpoint where the newest has lost its state; the newer are then dropped', async () => {
    const kept = states();
    await (await train({ from: 1, to: 3 }, kept)).run.finish('interrupted');
    const { run, checkpoints } = await train(
      { resume: async ([, older]) => older, from: 3, to: 3, without: [3] },
      kept,
    );
    expect(checkpoints.resumed?.step).toBe(2);
    await run.finish('interrupted');
    const again = await train({ resume: true, from: 3, to: 3 }, kept);
    expect(again.run.checkpoint?.step).toBe(2);
    expect(kept.deleted).toContain('arn:3');
    await again.run.finish();
  });

  it('counts what it used up to the checkpoint, and not what is done again', async () => {
    let sampled = 100;
    const usage = async () => [{ baseModel: 'm', prefillTokens: 0, sampleTokens: sampled, trainingTokens: 0 }];
    const kept = states();
    const run = await openRun({ folder, config, usage });
    const checkpoints = await runCheckpoints(run, kept);
    sampled += 10;
    await run.step(1, {});
    await checkpoints.save({ loop: 'toy', step: 1, state: {} }, { signal: new AbortController().signal });
    sampled += 500; // of a step that is cut off
    await run.finish('interrupted');
    const again = await openRun({ folder, config, usage, resume: true });
    sampled += 10;
    await again.step(2, {});
    expect((await again.finish()).usage).toMatchObject([{ sampleTokens: 20 }]);
    expect((await readRun(folder)).steps.map(({ metrics }) => metrics['usage/sample_tokens'])).toEqual([10, 20]);
  });

  it('may have more steps; other changes are refused, each with the old value and the new', async () => {
    await (await train({ from: 1, to: 5 }, states())).run.finish('interrupted');
    const changed = { ...config, learningRate: 0.5, prompt: 'Solve it at once.', extra: true };
    const refused = openRun({ folder, config: changed, seeds: { seed: 2 }, resume: true });
    await expect(refused).rejects.toThrow(
      'others: config.extra (absent then, true now), config.learningRate (0.01 then, 0.5 now), config.prompt (a text of 20 characters then, a text of 17 characters now)',
    );
    await expect(refused).rejects.not.toThrow('Solve');
    expect((await readRun(folder)).state).toBe('interrupted');
    await (await openRun({ folder, config: { ...config, steps: 9 }, resume: true })).finish('interrupted');
    await (await openRun({ folder, config: changed, resume: true, allowChanges: true })).finish('interrupted');
    const { record } = await readRun(folder);
    expect(record.resumed?.map((each) => each.changed?.length)).toEqual([1, 4]);
    expect(record.command).toEqual(record.resumed?.[0]?.command);
  });

  it('that is done has nothing left, unless it gets more steps', async () => {
    await (await train({ from: 1, to: 5 }, states())).run.finish();
    await expect(openRun({ folder, config, resume: true })).rejects.toThrow(
      /got one that is done, after its 5 steps; raise its steps/,
    );
    expect((await readRun(folder)).state).toBe('done');
    const { run } = await train({ config: { ...config, steps: 6 }, resume: true, from: 6, to: 6 }, states());
    expect(run.checkpoint?.step).toBe(5);
    await run.finish();
  });

  it('is gone on with by one process at a time', async () => {
    await (await train({ from: 1, to: 1 }, states())).run.finish('interrupted');
    const first = await openRun({ folder, config, resume: true });
    await expect(openRun({ folder, config, resume: true })).rejects.toMatchObject({ code: 'run_in_use' });
    await first.finish();
  });

  it('needs a run folder, and a checkpoint file that can be read', async () => {
    await expect(openRun({ folder, config, resume: true })).rejects.toMatchObject({ code: 'not_found' });
    await (await train({ from: 1, to: 1 }, states())).run.finish('interrupted');
    const path = join(folder, 'checkpoint.json');
    await writeFile(path, (await readFile(path, 'utf8')).replace('"step": 1', '"step": "one"'));
    await expect(openRun({ folder, config, resume: true })).rejects.toMatchObject({
      code: 'data_invalid',
      message: expect.stringContaining('checkpoints.0.step'),
    });
  });
});
