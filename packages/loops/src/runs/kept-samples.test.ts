import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type MetProblem, promptHash, readMet } from './met-problems.js';
import { openRun } from './open-run.js';
import { readSamples } from './read-run.js';
import type { RunSample, SampledRollouts } from './run-samples.js';
import { addSignOff, readSignOffs } from './sign-offs.js';

let directory: TemporaryDirectory;
let folder: string;

beforeEach(async () => {
  directory = await temporaryDirectory();
  folder = join(directory.path, 'run');
});

afterEach(() => directory[Symbol.asyncDispose]());

const rollout = (reward: number | undefined, tokens: number[]): SampledRollouts['rollouts'][number] => ({
  text: String(tokens.length),
  grade: reward === undefined ? { status: 'grader_error', error: new Error('x') } : { status: 'ok', reward },
  ...(reward === undefined ? {} : { reward }),
  sequence: { tokens, logprobs: tokens.map(() => -1), stopReason: 'stop' },
});

const groups: SampledRollouts[] = [
  { problem: { id: 'a', question: 'A?' }, prompt: [1], rollouts: [rollout(0, [1]), rollout(0.5, [1, 2])] },
  { problem: { id: 'b', question: 'B?' }, prompt: [2], rollouts: [rollout(undefined, [1, 2, 3, 4]), rollout(1, [3])] },
  { problem: { id: 'c', question: 'C?' }, prompt: [3], rollouts: [rollout(-1, [1]), rollout(1, [4])] },
];

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

async function keep(samples: { groupsPerStep?: number; everySteps?: number }, steps = 1): Promise<RunSample[]> {
  await using run = await openRun({ folder, config: {}, samples });
  for (let step = 1; step <= steps; step++) await run.onStep({ type: 'step-end', step, metrics: {}, groups });
  return all(readSamples(folder));
}

describe('the samples of a step', () => {
  it('hold the best, the worst and the longest of all, whichever groups are kept', async () => {
    const kept = await keep({ groupsPerStep: 1 });
    expect(kept.map(({ problem, member, marks }) => [problem, member, marks])).toEqual([
      ['a', 0, undefined],
      ['a', 1, undefined],
      ['b', 0, ['longest']],
      ['b', 1, ['best']],
      ['c', 0, ['worst']],
    ]);
    expect(kept.map(({ group, groupSize }) => [group, groupSize])).toEqual([
      [0, 2],
      [0, 2],
      [1, 2],
      [1, 2],
      [2, 2],
    ]);
  });

  it('hold these alone where the step is not one whose groups are kept, and nothing where none are wanted', async () => {
    const kept = await keep({ everySteps: 2 }, 2);
    expect(kept.filter(({ step }) => step === 1)).toHaveLength(6);
    expect(kept.filter(({ step }) => step === 2).map(({ marks }) => marks)).toEqual([['longest'], ['best'], ['worst']]);
    folder = join(directory.path, 'none');
    expect(await keep({ groupsPerStep: 0 })).toEqual([]);
  });

  it('name each problem once, with what it is told by, and with its content where samples are kept', async () => {
    await keep({}, 2);
    const met = await all(readMet(folder));
    expect(met).toEqual(
      groups.map(({ problem }) => ({
        ...{ use: 'train', id: problem.id, step: 1, problem },
        prompt: promptHash({ prompt: [{ role: 'user', content: ` ${problem.question?.toLowerCase()} ` }] }),
      })),
    );
    folder = join(directory.path, 'none');
    await keep({ groupsPerStep: 0 });
    expect((await all(readMet(folder))).map(({ id, problem }) => [id, problem])).toEqual([
      ['a', undefined],
      ['b', undefined],
      ['c', undefined],
    ]);
  });
});

describe('the data of a run', () => {
  it('are told by the hashes of their prompts, and those met after the step that a run goes on from are dropped', async () => {
    const rows = [{ messages: [{ role: 'user', content: 'Hello' }] }, { prompt: 'hello', completion: 'x' }];
    const first = await openRun({ folder, config: {}, data: { train: rows, heldOut: { rows: 1, sha256: 'ab' } } });
    for (const step of [1, 2]) {
      const own = [{ ...groups[0]!, problem: { id: `p${step}`, question: `Q${step}` } }];
      await first.onStep({ type: 'step-end', step, metrics: {}, groups: own });
    }
    await first.finish('interrupted');
    const data = { train: rows, heldOut: { rows: 1, sha256: 'ab' } };
    await (await openRun({ folder, config: {}, data, resumeAfter: 1 })).finish();
    const short = ({ use, id, prompt }: MetProblem) => [use, id, prompt === promptHash(rows[0])];
    expect((await all(readMet(folder))).map(short)).toEqual([
      ['train', undefined, true],
      ['train', 'p1', false],
    ]);
  });
});

describe('a sign-off', () => {
  it('says who saw what, and stays beside earlier ones', async () => {
    const seen = await keep({});
    await addSignOff(folder, { name: ' Ada ', seen, now: () => 0 });
    await addSignOff(folder, { name: 'Grace', note: 'short', seen: seen.slice(0, 1), isWhole: false });
    const [first, second] = await readSignOffs(folder);
    expect(first).toMatchObject({
      ...{ name: 'Ada', note: '', at: '1970-01-01T00:00:00.000Z' },
      seen: { samples: 6, problems: 3, steps: [1], sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    });
    expect([first?.seen.whole, second?.seen.whole]).toEqual([undefined, false]);
    expect([second?.note, second?.seen.samples, second?.seen.sha256 === first?.seen.sha256]).toEqual([
      'short',
      1,
      false,
    ]);
  });

  it('needs a name, and something that was seen', async () => {
    const seen = await keep({});
    await expect(addSignOff(folder, { name: ' ', seen })).rejects.toThrow('name');
    await expect(addSignOff(folder, { name: 'Ada', seen: [] })).rejects.toThrow('seen');
    await expect(addSignOff(directory.path, { name: 'Ada', seen })).rejects.toMatchObject({ code: 'not_found' });
  });
});
