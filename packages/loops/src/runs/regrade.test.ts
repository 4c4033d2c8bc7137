import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Environment, Problem } from '../environments/environment.js';
import { graderVersion } from './grader-version.js';
import { openRun } from './open-run.js';
import { type RegradedSample, type RegradingFailure, regradeSamples } from './regrade.js';
import { readRecord } from './run-record.js';
import type { SampledRollouts } from './run-samples.js';

let directory: TemporaryDirectory;
let folder: string;

beforeEach(async () => {
  directory = await temporaryDirectory();
  folder = join(directory.path, 'run');
});

afterEach(() => directory[Symbol.asyncDispose]());

const answer = (text: string, reward: number, graded = reward): SampledRollouts['rollouts'][number] => ({
  ...{ text, reward, grade: { status: 'ok', reward: graded } },
  sequence: { tokens: [1], logprobs: [-1], stopReason: 'stop' },
});

const problem = (id: string): Problem => ({ id, question: `${id}?`, answer: id });

async function keep(groups: readonly SampledRollouts[], groupsPerStep = 9): Promise<void> {
  await using run = await openRun({ folder, config: {}, samples: { groupsPerStep } });
  await run.onStep({ type: 'step-end', step: 1, metrics: {}, groups });
}

/** A grader of numbers: what the text says, so that each test writes what its answers are worth now. */
const environment: Environment = {
  name: 'said',
  draw: () => problem('none'),
  grade: ({ text }) => {
    if (text === 'broken') throw new Error('broken');
    return { status: 'ok', reward: Number(text) };
  },
};

async function regrade(problems: readonly Problem[] = []) {
  const changed: RegradedSample[] = [];
  const failures: RegradingFailure[] = [];
  const told = {
    onChange: (each: RegradedSample) => changed.push(each),
    onFailure: (each: RegradingFailure) => failures.push(each),
  };
  const regrading = await regradeSamples(folder, { environment, problems, ...told });
  return { regrading, changed, failures };
}

describe('regrading', () => {
  it('tells flipped advantages from those that appear, vanish or stay', async () => {
    await keep([
      { problem: problem('flips'), rollouts: [answer('0', 1), answer('1', 0)] },
      { problem: problem('appears'), rollouts: [answer('0', 1), answer('1', 1)] },
      { problem: problem('vanishes'), rollouts: [answer('1', 1), answer('1', 0)] },
      { problem: problem('stays'), rollouts: [answer('0.5', 0.25), answer('2', 1)] },
    ]);
    const { regrading, changed } = await regrade();
    expect(regrading).toEqual({
      ...{ graded: 8, unknown: 0, episodes: 0, changed: 6, failed: 0 },
      ...{ compared: 8, flipped: 2, gained: 2, lost: 2 },
    });
    expect(changed.map(({ sample, reward, advantage }) => [sample.problem, reward, advantage])).toEqual([
      ['flips', { before: 1, after: 0 }, { before: 1, after: -1 }],
      ['flips', { before: 0, after: 1 }, { before: -1, after: 1 }],
      ['appears', { before: 1, after: 0 }, { before: 0, after: -1 }],
      ['appears', { before: 1, after: 1 }, { before: 0, after: 1 }],
      ['vanishes', { before: 1, after: 1 }, { before: 1, after: 0 }],
      ['vanishes', { before: 0, after: 1 }, { before: -1, after: 0 }],
      ['stays', { before: 0.25, after: 0.5 }, { before: -1, after: -1 }],
      ['stays', { before: 1, after: 2 }, { before: 1, after: 1 }],
    ]);
  });

  it('compares no advantages of groups of which answers are missing, and counts answers that fail now', async () => {
    await keep(
      [
        { problem: problem('whole'), rollouts: [answer('broken', 1), answer('0', 0)] },
        { problem: problem('part'), rollouts: [answer('1', 2), answer('1', 1), answer('0', -1)] },
      ],
      1,
    );
    const { regrading, changed, failures } = await regrade();
    expect(regrading).toMatchObject({ graded: 4, changed: 2, failed: 1, compared: 1, flipped: 0 });
    // Apart from those that changed, with the cause.
    expect(changed.map(({ sample, reward }) => [sample.problem, reward])).toEqual([
      ['whole', { before: 0, after: 0 }],
      ['part', { before: 2, after: 1 }],
      ['part', { before: -1, after: 0 }],
    ]);
    expect(failures).toMatchObject([{ status: 'grader_error', reward: { before: 1 }, error: { message: 'broken' } }]);
    expect(failures[0]?.reward).not.toHaveProperty('after');
  });

  it('counts failures that keep the reward which failures had before', async () => {
    const failed = {
      text: 'broken',
      reward: -1,
      grade: { status: 'grader_error' as const, error: new Error('was broken') },
    };
    await keep([{ problem: problem('floor'), rollouts: [{ ...answer('broken', -1), ...failed }, answer('0', 0)] }]);
    expect((await regrade()).regrading).toMatchObject({ graded: 2, failed: 1, changed: 0 });
  });

  it('ends where gradings in a row never end, and counts one that takes too long as failed', async () => {
    await keep([{ problem: problem('slow'), rollouts: ['0', 'never', '1', 'never'].map((text) => answer(text, 1)) }]);
    const halting: Environment = {
      ...environment,
      grade: (given, context) => (given.text === 'never' ? new Promise(() => {}) : environment.grade(given, context)),
    };
    const some = await regradeSamples(folder, { environment: halting, concurrency: 2, timeoutMs: 5 });
    expect(some).toMatchObject({ graded: 4, failed: 2 });
    const stuck: Environment = { ...environment, grade: () => new Promise(() => {}) };
    await expect(regradeSamples(folder, { environment: stuck, concurrency: 1, timeoutMs: 5 })).rejects.toThrow(
      '3 gradings in a row gave no grade within 0.005 s each',
    );
    await expect(regradeSamples(folder, { environment, timeoutMs: 0 })).rejects.toThrow('options.timeoutMs');
  });

  it('takes off again what the run took off for length', async () => {
    await keep([{ problem: problem('long'), rollouts: [answer('1', 0.5, 1), answer('0', 0)] }]);
    expect((await regrade()).regrading).toMatchObject({ changed: 0, flipped: 0 });
  });

  it('needs the problems: from the run, or from the task', async () => {
    await keep([{ problem: { id: 'a', question: 'a?', test: () => 1 } as { id: string }, rollouts: [answer('1', 1)] }]);
    await expect(regrade()).rejects.toThrow('none of 1 is known by its id');
    expect((await regrade([problem('a')])).regrading).toMatchObject({ graded: 1, changed: 0 });
  });
});

describe('the task of a run', () => {
  it('is kept by name and version, or by version alone, and stays where the run goes on', async () => {
    const file = join(directory.path, 'task.ts');
    await writeFile(file, 'export const task = 1;');
    const { sha256 } = await graderVersion(file);
    await (await openRun({ folder, config: {}, task: { name: 'sums', file } })).finish('interrupted');
    expect(await readRecord(folder)).toMatchObject({ task: 'sums', grader: { sha256 } });
    await (await openRun({ folder, config: {}, task: file, resumeAfter: 0 })).finish();
    expect(await readRecord(folder)).toMatchObject({ task: 'sums', grader: { sha256 } });
    folder = join(directory.path, 'nameless');
    await (await openRun({ folder, config: {}, task: file })).finish();
    expect(await readRecord(folder)).toMatchObject({ grader: { sha256 } });
    expect(await readRecord(folder)).not.toHaveProperty('task');
    const nothing = { name: undefined, file } as never;
    await expect(openRun({ folder, config: {}, task: nothing })).rejects.toThrow('options.task.name: expected');
  });
});

describe('the version of a grader', () => {
  it('changes with the module and with modules beside it, not with the folder', async () => {
    const write = (name: string, text: string) => writeFile(join(directory.path, name), text);
    await write('task.ts', `import { x } from './grader.js';\nimport 'zod';\nexport const task = x;`);
    await write('grader.ts', 'export const x = 1;');
    const first = await graderVersion(join(directory.path, 'task.ts'));
    expect(first.modules).toBe(2);
    await write('grader.ts', 'export const x = 2;');
    const second = await graderVersion(join(directory.path, 'task.ts'));
    expect(second.sha256).not.toBe(first.sha256);
    await using other = await temporaryDirectory();
    await writeFile(
      join(other.path, 'renamed.ts'),
      `import { x } from './grader.js';\nimport 'zod';\nexport const task = x;`,
    );
    await writeFile(join(other.path, 'grader.ts'), 'export const x = 2;');
    expect(await graderVersion(join(other.path, 'renamed.ts'))).toEqual(second);
    await expect(graderVersion(join(directory.path, 'none.ts'))).rejects.toMatchObject({ code: 'not_found' });
  });

  it.each([
    ['./grader', 'grader.ts'],
    ['./grader', 'grader/index.ts'],
    ['./grader.v2', 'grader.v2.ts'],
    ['./grader.js', 'grader.tsx'],
    ['./grader.js?fresh', 'grader.ts'],
  ])('changes with what the import of %s leads to, at %s', async (name, place) => {
    const task = join(directory.path, 'task.ts');
    await writeFile(task, `import { x } from '${name}';\nexport const task = x;`);
    await mkdir(dirname(join(directory.path, place)), { recursive: true });
    await writeFile(join(directory.path, place), 'export const x = 1;');
    const first = await graderVersion(task);
    await writeFile(join(directory.path, place), 'export const x = 2;');
    expect(first.modules).toBe(2);
    expect((await graderVersion(task)).sha256).not.toBe(first.sha256);
  });

  it('counts every module, however many there are', async () => {
    const names = Array.from({ length: 1200 }, (_, i) => `part-${i}.js`);
    await Promise.all(names.map((name) => writeFile(join(directory.path, name), '')));
    const task = join(directory.path, 'task.js');
    await writeFile(task, names.map((name) => `import './${name}';`).join('\n'));
    expect((await graderVersion(task)).modules).toBe(1201);
  });
});
