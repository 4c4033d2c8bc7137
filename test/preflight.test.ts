/** `loopwright preflight` from outside, on the bundled model: what it shows, its files, its exit code. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PreflightReport } from 'loopwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from './support/command.js';

const root = fileURLToPath(new URL('..', import.meta.url));
let parent: string;
let home: string;

beforeAll(async () => {
  // Below the repository, where the packages are found as if they had been installed.
  await mkdir(join(root, 'tmp'), { recursive: true });
  parent = await mkdtemp(join(root, 'tmp', 'preflight-'));
  home = join(parent, 'home');
});

afterAll(() => rm(parent, { recursive: true, force: true }));

const taskOf = (train: string): string => `
import { arithmetic, defineTask } from 'loopwright';
const environment = arithmetic({ operations: ['+'] });
const train = environment.problems({ split: 'rl', count: 600, seed: 1 })${train};
const heldOut = environment.problems({ split: 'held-out', count: 50, seed: 1 });
export const task = defineTask({ name: 'sums', environment, train, heldOut, settings: { maxTokens: 8 } });
`;

test('sums on the bundled model may be trained on; the rates are kept, and asked for only once', async () => {
  const file = join(parent, 'task.mjs');
  await writeFile(file, taskOf(''));
  const prices = join(parent, 'prices.json');
  await writeFile(prices, '{"currency": "EUR", "models": {"*": {"prefill": 1, "sample": 2, "training": 3}}}');
  const args = ['preflight', file, '--prompts', '20', '--prices', prices, '--json'];
  const first = await runCommand(args, { home, cwd: parent });
  expect(first.stderr).toBe('');
  expect(first.code).toBe(0);
  const report = first.events.at(-1)!;
  expect(report).toMatchObject({ type: 'preflight', outcome: 'go', prompts: { train: 600, measured: 20 } });
  const { seconds, memory, cost } = (report as unknown as PreflightReport).forecast; // true: it is the report
  for (const range of [seconds, memory, cost]) {
    expect(range?.low).toBeGreaterThan(0);
    expect(range?.low).toBeLessThanOrEqual(range?.expected ?? 0);
    expect(range?.high).toBeGreaterThanOrEqual(range?.expected ?? 0);
  }
  if (process.platform === 'linux') expect(memory?.low).toBe(memory?.held);
  const rates = (await readFile(join(parent, 'preflight', 'rates.jsonl'), 'utf8')).trim().split('\n');
  expect(rates).toHaveLength(20);
  expect(JSON.parse(rates[0]!)).toMatchObject({ id: expect.any(String), n: 8 });
  const again = await runCommand(args, { home, cwd: parent });
  expect(again.events.at(-1)).toEqual(report);
  const progress = (await readFile(join(parent, 'preflight', 'progress.jsonl'), 'utf8')).trim().split('\n');
  expect(progress).toHaveLength(22); // the head, the prompts, the steps that were measured
});

test('too few prompts are no go, with the reason and the remedy', async () => {
  const file = join(parent, 'few.mjs');
  await writeFile(file, taskOf('.slice(0, 30)'));
  const { code, stdout } = await runCommand(['preflight', file, '--prompts', '4', '--out', join(parent, 'few')], {
    home,
    cwd: parent,
  });
  expect(code).toBe(1);
  expect(stdout).toMatch(/stop {2}preflight\/few-prompts\n {6}30 prompts to train on\n {6}→ gather 500/);
  expect(stdout).toContain('No go.');
});

test('measurements are refused once a grader that the task imports from beside it has changed', async () => {
  const file = join(parent, 'graded.mjs');
  const grader = join(parent, 'grader.mjs');
  await writeFile(file, `import './grader.mjs';${taskOf('.slice(0, 30)')}`);
  await writeFile(grader, 'export const right = 1;');
  const args = ['preflight', file, '--prompts', '2', '--samples', '2', '--no-time', '--out', join(parent, 'graded')];
  expect((await runCommand(args, { home, cwd: parent })).stdout).toContain('No go.');
  await writeFile(grader, 'export const right = 2;');
  const { stderr } = await runCommand(args, { home, cwd: parent });
  expect(stderr).toContain('other measurements in');
});

test('what a readable form is worth is measured by one command, told before, kept, and the same again', async () => {
  const file = join(parent, 'form.mjs');
  await writeFile(file, taskOf(''));
  const out = join(parent, 'form');
  const args = ['preflight', file, '--prompts', '20', '--no-time', '--out', out, '--format-gap', '--draws', '6'];
  const first = await runCommand([...args, '--json'], { home, cwd: parent });
  expect(first.code).toBe(0);
  const told = first.events.find(({ type }) => type === 'format-gap-forecast');
  const report = first.events.at(-1) as unknown as PreflightReport; // true: the last event is the report
  const { measured, unparsedShare } = report.formatGap;
  expect(measured).toMatchObject({ mostDraws: 6, prompts: { measured: 20 } });
  expect(measured!.answers.unreadable).toBe(Math.round(unparsedShare * report.passRate.n));
  expect(told).toMatchObject({ mostDraws: 6, answers: measured!.answers.unreadable });
  expect(measured!.compared!.difference).toBeGreaterThan(0); // about a third of the tiny model's answers are empty or more than a number
  const progress = await readFile(join(out, 'progress.jsonl'), 'utf8');
  const again = await runCommand(args, { home, cwd: parent });
  expect(again.stderr).toBe(''); // nothing is left to be drawn
  expect(again.stdout).toMatch(/verdict +(mostly form|in part form|not form|not distinguishable yet)/);
  expect(await readFile(join(out, 'progress.jsonl'), 'utf8')).toBe(progress);
  const unasked = await runCommand(['preflight', file, '--prompts', '20', '--no-time', '--out', out], {
    home,
    cwd: parent,
  });
  expect(unasked.stdout).toBe(again.stdout); // what was measured once is told
  const anew = await runCommand([...args, '--json', '--fresh'], { home, cwd: parent });
  expect(anew.events.at(-1)).toEqual(first.events.at(-1));
});
