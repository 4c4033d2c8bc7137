/** The smoke test of a task: it passes on a sound one, and for each part there is a task, broken on purpose, that fails in it. */
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type ArithmeticProblem,
  arithmetic,
  connect,
  type EpisodeEnvironment,
  type Reply,
  type ServiceConnection,
  smoke,
  smokeParts,
  type Task,
} from 'loopwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand, startCommand } from './support/command.js';

const root = fileURLToPath(new URL('..', import.meta.url));
let parent: string;
let service: ServiceConnection;

beforeAll(async () => {
  // Below the repository, where the packages are found as if they had been installed.
  await mkdir(join(root, 'tmp'), { recursive: true });
  parent = await mkdtemp(join(root, 'tmp', 'smoke-'));
  service = await connect({ dataDir: join(parent, 'data') });
});

afterAll(async () => {
  await service.close();
  await rm(parent, { recursive: true, force: true });
});

const environment = arithmetic({ operations: ['+'] });
const train = environment.problems({ split: 'rl', count: 40, seed: 1 });
const heldOut = environment.problems({ split: 'held-out', count: 10, seed: 1 });
const sums: Task<ArithmeticProblem> = { name: 'sums', environment, train, heldOut, settings: { maxTokens: 8 } };

/** `pass`, `fail` or `not-run` of each part, and what the failed one says. */
async function partsOf(task: Task<ArithmeticProblem>) {
  const folder = await mkdtemp(join(parent, 'run-'));
  const { outcome, parts } = await smoke(task, { service, folder, prompts: 6, steps: 4 });
  expect(parts.map(({ name }) => name)).toEqual(smokeParts);
  expect(outcome).toBe(parts.every(({ status }) => status === 'pass') ? 'pass' : 'fail');
  const failed = parts.find(({ status }) => status === 'fail');
  return {
    statuses: parts.map(({ status }) => status),
    seen: failed?.seen,
    remedy: failed !== undefined && 'remedy' in failed ? failed.remedy : undefined,
  };
}

test('a sound task passes in every part', async () => {
  expect((await partsOf(sums)).statuses).toEqual(Array(6).fill('pass'));
});

describe('a task that is broken on purpose fails', () => {
  test('in grader, and nowhere else, where the grader takes every answer', async () => {
    const task = { ...sums, environment: { ...environment, grade: () => ({ status: 'ok' as const, reward: 1 }) } };
    const { statuses, seen, remedy } = await partsOf(task);
    expect(statuses).toEqual(['fail', 'pass', 'pass', 'pass', 'pass', 'pass']);
    expect(seen).toContain('grader/constant');
    expect(remedy).toContain('loopwright grader test');
  });

  test('in data, where held-out problems are trained on, and where a source gives others the second time', async () => {
    const leaking = await partsOf({ ...sums, heldOut: train.slice(0, 5) });
    expect(leaking.statuses).toEqual(['pass', 'fail', 'not-run', 'not-run', 'not-run', 'not-run']);
    expect(leaking.seen).toContain('5 of 5 held-out prompts are trained on too');
    let reading = 0;
    const restless = () => environment.problems({ split: 'rl', count: 20, seed: ++reading });
    expect(await partsOf({ ...sums, train: restless })).toMatchObject({
      seen: 'task.train gave other problems when it was read a second time',
    });
  });

  test('in sampling, where a prompt has no tokens, and where what is random is not seeded', async () => {
    const empty = await partsOf({ ...sums, environment: { ...environment, prompt: () => [] } });
    expect(empty.statuses).toEqual(['pass', 'pass', 'fail', 'not-run', 'not-run', 'not-run']);
    let calls = 0;
    const prompt: typeof environment.prompt = ({ question }, tokenizer) => tokenizer.encode(`${++calls}+${question}`);
    const moody = await partsOf({ ...sums, environment: { ...environment, prompt } });
    expect(moody.statuses).toEqual(['pass', 'pass', 'fail', 'not-run', 'not-run', 'not-run']);
    expect(moody.seen).toBe('the same seed gave other answers or rewards the second time');
  });

  test('in step, where rewards leave what a number can hold', async () => {
    const grade: typeof environment.grade = async (answer, context) => {
      const judged = await environment.grade(answer, context);
      return 'reward' in judged ? { ...judged, reward: judged.reward * 1e300 } : judged;
    };
    const { statuses, remedy } = await partsOf({ ...sums, environment: { ...environment, grade } });
    expect(statuses).toEqual(['pass', 'pass', 'pass', 'fail', 'not-run', 'not-run']);
    expect(remedy).not.toBe('');
  });

  test('in checkpoint and restore, where the grader remembers what it has seen', async () => {
    const seen = new Map<string, number>();
    const grade: typeof environment.grade = async (answer, context) => {
      const judged = await environment.grade(answer, context);
      const key = `${answer.problem.id} ${answer.text}`;
      const times = (seen.get(key) ?? 0) + 1;
      seen.set(key, times);
      // A bonus for what is new: the gate and the sampling part, which look twice at the same, come to the same the first hundred times.
      return 'reward' in judged && times > 12 ? { ...judged, reward: judged.reward + 0.5 } : judged;
    };
    const problem = train[0]!;
    const cases = [
      { problem, label: 'good' as const, completion: problem.answer },
      { problem, label: 'bad' as const, completion: 'no number' },
    ];
    const {
      statuses,
      seen: said,
      remedy,
    } = await partsOf({
      ...sums,
      cases,
      train: train.slice(0, 4),
      environment: { ...environment, grade },
    });
    expect(statuses).toEqual(['pass', 'pass', 'pass', 'pass', 'fail', 'pass']);
    expect(said).toMatch(/^step \d came to other rewards when the run went on from its checkpoint$/);
    expect(remedy).toContain('keep nothing between calls');
  });

  test('in grader and sampling, where a grade holds what its type does not', async () => {
    const grade: typeof environment.grade = async (answer, context) => {
      const judged = await environment.grade(answer, context);
      if (!('reward' in judged)) return judged;
      // As a grader in JavaScript may have it: a weight that is a text.
      const weight = '1' as unknown as number;
      return { ...judged, components: [{ name: 'right', weight, status: 'ok' as const, score: judged.reward }] };
    };
    const { statuses, seen } = await partsOf({ ...sums, environment: { ...environment, grade } });
    expect(statuses).toEqual(['fail', 'pass', 'fail', 'not-run', 'not-run', 'not-run']);
    expect(seen).toContain('grader/fails');
  });

  test('in tracking, where problems hold what JSON does not', async () => {
    const odd = train.map((problem) => ({ ...problem, size: 1n }));
    const problem = heldOut[0]!;
    const cases = [
      { problem, label: 'good' as const, completion: problem.answer },
      { problem, label: 'bad' as const, completion: 'no number' },
    ];
    const { statuses, seen } = await partsOf({ ...sums, cases, train: odd });
    expect(statuses).toEqual(['pass', 'pass', 'pass', 'pass', 'pass', 'fail']);
    expect(seen).toBe('it threw (TypeError)');
  });
});

describe('a task of episodes', () => {
  /** For the gate alone: its calls are not counted. */
  const known = environment.problems({ split: 'held-out', count: heldOut.length + 1, seed: 1 }).at(-1)!;
  /** Two turns: the sum is asked again after the first answer. */
  function asked(respond?: (calls: number) => Reply | undefined): Task<ArithmeticProblem> {
    let calls = 0;
    const chat: EpisodeEnvironment<ArithmeticProblem> = {
      name: 'asked-again',
      draw: (random) => environment.draw(random),
      begin: ({ id, question, answer }) => ({
        messages: [{ role: 'user', content: question }],
        respond({ index, text }) {
          const own = id === known.id ? undefined : respond?.(++calls);
          if (own !== undefined) return own;
          const isRight = text.trim() === answer;
          if (index === 0 && !isRight) return { messages: [{ role: 'user', content: question }] };
          return { grade: { status: 'ok', reward: isRight ? 1 : 0 } };
        },
        unfinished: () => ({ status: 'ok', reward: 0 }),
      }),
    };
    return { ...sums, environment: chat };
  }

  test('passes in every part', async () => {
    expect(await partsOf(asked())).toMatchObject({ statuses: Array(6).fill('pass') });
  });

  test('fails in sampling where respond throws, and in step where it throws later', async () => {
    const cases = [
      { problem: known, label: 'good' as const, completion: known.answer },
      { problem: known, label: 'bad' as const, completion: [{ text: 'no' }, { text: 'number' }] },
    ];
    const broken = (after: number) => ({
      ...asked((calls) => {
        if (calls > after) throw new TypeError('no more');
        return undefined;
      }),
      cases,
    });
    const soon = await partsOf(broken(0));
    expect(soon.statuses).toEqual(['pass', 'pass', 'fail', 'not-run', 'not-run', 'not-run']);
    expect(soon.seen).toMatch(/^\d+ of 12 episodes came to no reward \(environment_error\)$/);
    // Sampling takes 6 prompts × 2 answers × 2 turns, twice; steps at least 4 × 64 answers.
    const late = await partsOf(broken(2 * 6 * 2 * 2));
    expect(late.statuses).toEqual(['pass', 'pass', 'pass', 'fail', 'not-run', 'not-run']);
    expect(late.seen).toContain('environment_error');
  });
});

test('problems that cannot be read are a fault of data, not of the grader', async () => {
  const unread = () => {
    throw new Error('no file');
  };
  const { statuses, seen } = await partsOf({ ...sums, train: unread });
  expect(statuses).toEqual(['not-run', 'fail', 'not-run', 'not-run', 'not-run', 'not-run']);
  expect(seen).toBe('it threw (Error)');
});

test('the command shows each part with its remedy, and exits with 1 on a failure', async () => {
  const file = join(parent, 'task.mjs');
  await writeFile(
    file,
    `import { arithmetic, defineTask } from 'loopwright';
const environment = arithmetic({ operations: ['+'] });
const train = environment.problems({ split: 'rl', count: 40, seed: 1 });
export const task = defineTask({ name: 'sums', environment, train, heldOut: train.slice(0, 5), settings: { maxTokens: 8 } });
`,
  );
  const { code, stdout } = await runCommand(['smoke', file], { home: join(parent, 'home') });
  expect(code).toBe(1);
  expect(stdout).toMatch(/^sums: 50 prompts and 20 steps of the bundled model\n\npass +grader .*\n.*\nfail +data /);
  expect(stdout).toMatch(/→ split by prompt .*\nnot-run +sampling\n +needs data: mend data first\n/);
  expect(stdout).toMatch(/\nFails\.\n$/);
});

test('the command says so where it has no folder for its files, and leaves none after Ctrl-C', async () => {
  const home = join(parent, 'home');
  const file = join(parent, 'sound.mjs');
  const module = `import { arithmetic, defineTask } from 'loopwright';
export const task = defineTask({ name: 'sums', environment: arithmetic(), settings: { maxTokens: 8 } });
`;
  await writeFile(file, module);
  const nowhere = await runCommand(['smoke', file], { home, env: { TMPDIR: join(parent, 'none') } });
  expect(nowhere).toMatchObject({ code: 1, stderr: expect.stringContaining('name another by TMPDIR') });
  const temporary = join(parent, 'temporary');
  await mkdir(temporary);
  const command = startCommand(['smoke', file, '--steps', '10000'], { home, env: { TMPDIR: temporary } });
  await command.output(/pass +sampling/);
  command.interrupt();
  expect((await command.end).code).toBe(130);
  expect(await readdir(temporary)).toEqual([]);
});
