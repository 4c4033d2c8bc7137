/** Samples from outside: shown side by side as text alone, reported, and signed off. */
import { execFile } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from './support/command.js';

let folder: TemporaryDirectory;
let home: string;

/** A run of four steps whose answers try to move the cursor and to be markup. */
const program = `
import { withRun } from ${JSON.stringify(import.meta.resolve('loopwright'))};
const answer = (text, reward) => ({
  text,
  reward,
  grade: { status: 'ok', reward, components: [{ name: 'format', weight: 0.2, status: 'ok', score: 1 }] },
  sequence: { tokens: [7, 8, 9], logprobs: [-0.5, -0.25, -0.75], stopReason: 'stop' },
});
const problem = (id) => ({ id, question: 'Question ' + id + '?', answer: id });
const task = { name: 'toy\\u202e', file: 'program.mjs' };
await withRun({ folder: 'runs/toy', config: {}, task, samples: { groupsPerStep: 1 } }, async (run) => {
  for (const step of [1, 2, 3, 4]) {
    const rollouts = (id) => [answer('<b>\\u001b[31m' + id + ' at ' + step + '\\nsecond line', step / 4), answer('no', 0)];
    const groups = ['a', 'b'].map((id) => ({ problem: problem(id), prompt: [5], rollouts: rollouts(id) }));
    await run.onStep({ type: 'step-end', step, metrics: { 'reward/mean': step / 8 }, groups });
  }
});
`;

beforeAll(async () => {
  folder = await temporaryDirectory();
  home = join(folder.path, 'home');
  await writeFile(join(folder.path, 'program.mjs'), program);
  await promisify(execFile)(process.execPath, ['program.mjs'], {
    cwd: folder.path,
    env: { PATH: process.env.PATH ?? '', HOME: home },
  });
});

afterAll(() => folder[Symbol.asyncDispose]());

const loopwright = (...args: string[]) => runCommand(args, { home, cwd: folder.path });

test('the same prompts stand beside each other at the first, the middle and the last step, as text alone', async () => {
  const { stdout, code } = await loopwright('samples', 'runs/toy', '--tokens');
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /step 1, reward 0\.25: format 1 +│ step 3, reward 0\.75: format 1 +│ step 4, reward 1: format 1\n/,
  );
  expect(stdout).toMatch(/3 tokens, logprob -0\.50 each/);
  expect(stdout).toMatch(
    /<b>\\x1b\[31ma at 1 +│ <b>\\x1b\[31ma at 3 +│ <b>\\x1b\[31ma at 4\nsecond line +│ second line/,
  );
  expect(stdout).toContain('Best, worst and longest of step 4');
  expect(stdout).toContain('7:-0.500 8:-0.250 9:-0.750 (stop)');
  expect(stdout).toContain('Nobody has signed it off');
  expect(stdout).not.toContain('\u001b');
});

test('one step shows its best, worst and longest', async () => {
  const { events } = await loopwright('samples', 'runs/toy', '--step', '2', '--json');
  expect(events.map(({ type, step, marks, reward }) => [type, step, marks, reward])).toEqual([
    ['sample', 2, ['best', 'longest'], 0.5],
    ['sample', 2, ['worst'], 0],
  ]);
  const none = await loopwright('samples', 'runs/toy', '--step', '9');
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('a step of which samples are kept: 1 to 4\n')]);
});

test('stored answers are graded again by another grader, and flipped advantages are told', async () => {
  const task = `
import { defineTask } from ${JSON.stringify(import.meta.resolve('loopwright'))};
const draw = () => ({ id: 'a', question: 'a', answer: 'a' });
const grade = ({ text }) => ({ status: 'ok', reward: text === 'no' ? 1 : 0 });
export const task = defineTask({ name: 'other', environment: { name: 'other', draw, grade } });
`;
  await writeFile(join(folder.path, 'task.mjs'), task);
  const { stdout, code } = await loopwright('samples', 'runs/toy', '--regrade', 'task.mjs');
  expect(code).toBe(0);
  expect(stdout).toContain('8 answers graded again: 8 have another reward now.');
  expect(stdout).toMatch(/flipped +8: from above/);
  expect(stdout).toMatch(/1 +train +a +0 +0\.25 +0 +\+ → − +<b>\\x1b\[31ma at 1\\nsecond line/);
  expect(stdout).toContain('Another task: the run’s is toy\\u{202e}, this one other.');
  expect(stdout).toMatch(/grader then +[0-9a-f]{16}\n +grader now +[0-9a-f]{16}\n/);
  const { events } = await loopwright('samples', 'runs/toy', '--regrade', 'task.mjs', '--json');
  expect(events.at(-1)).toMatchObject({ type: 'regrading', graded: 8, flipped: 8, task: { now: 'other' } });
  // A run of before these were kept.
  const [toy, old] = ['toy', 'old'].map((name) => join(folder.path, 'runs', name)) as [string, string]; // two of two
  await cp(toy, old, { recursive: true });
  const { task: _task, grader: _grader, ...record } = JSON.parse(await readFile(join(old, 'run.json'), 'utf8'));
  await writeFile(join(old, 'run.json'), JSON.stringify(record));
  const unknown = await loopwright('samples', 'runs/old', '--regrade', 'task.mjs');
  expect(unknown.stdout).toMatch(/^8 answers graded again[\s\S]*grader then +not recorded/);
});

test('answers that can not be graded now are told apart, with the first cause; the same task is no other', async () => {
  const failing = `
import { defineTask } from ${JSON.stringify(import.meta.resolve('loopwright'))};
const draw = () => ({ id: 'a', question: 'a', answer: 'a' });
const grade = ({ text }) => {
  if (text === 'no') throw new RangeError('no \\u001b[2J answer');
  return { status: 'ok', reward: 1 };
};
export const task = defineTask({ name: 'toy\\u202e', environment: { name: 'toy', draw, grade } });
`;
  await writeFile(join(folder.path, 'failing.mjs'), failing);
  const { stdout, code } = await loopwright('samples', 'runs/toy', '--regrade', 'failing.mjs');
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /4 answers graded again: 3 have another reward now\.\n4 more could not be graded \(grader_error 4\)\. The first, answer 1 to a of step 1: RangeError: no \\x1b\[2J answer\n/,
  );
  expect(stdout).not.toMatch(/0 +grader_error/);
  expect(stdout).not.toContain('Another task');
  const { events } = await loopwright('samples', 'runs/toy', '--regrade', 'failing.mjs', '--json');
  const failures = events.filter(({ type }) => type === 'regrade-failed');
  expect(failures).toHaveLength(4);
  expect(failures[0]).toMatchObject({ step: 1, problem: 'a', member: 1, status: 'grader_error' });
  expect(events.at(-1)).toMatchObject({ graded: 8, changed: 3, failed: 4 });
});

test('a sign-off is kept with what was seen, and told by show and report', async () => {
  const before = await loopwright('runs', 'show', 'runs/toy');
  expect(before.stdout).toMatch(/signed off +by nobody/);
  const { stdout } = await loopwright('samples', 'runs/toy', '--sign-off', 'Ada <i>', '--note', 'fine');
  expect(stdout).toMatch(
    /Signed off by Ada <i>, 20\d\d-.* who saw 5 answers to 1 problem at steps 1, 3, 4, in full: “fine”/,
  );
  expect(stdout).not.toContain('--full');
  expect((await loopwright('runs', 'show', 'runs/toy')).stdout).toMatch(/signed off +by Ada <i>/);
  await loopwright('report', 'runs/toy');
  const page = await readFile(join(folder.path, 'runs', 'toy', 'report.html'), 'utf8');
  expect(page).toContain('Signed off by Ada &lt;i&gt;');
  expect(page).toContain('<summary>1 + 3 tokens</summary><pre>prompt 5\nanswer 7:-0.500 8:-0.250 9:-0.750</pre>');
  expect(page).toContain('&lt;b&gt;\\x1b[31ma at 4');
  expect(page).not.toMatch(/<b>\\x1b|<i>/);
});

test('what is shown in part is counted once, and a sign-off says so', async () => {
  const toy = join(folder.path, 'runs', 'toy', 'samples.jsonl');
  const long = join(folder.path, 'runs', 'long');
  await cp(join(folder.path, 'runs', 'toy'), long, { recursive: true });
  const lines = (await readFile(toy, 'utf8')).replaceAll('\\nsecond line', '\\nline'.repeat(20));
  await writeFile(join(long, 'samples.jsonl'), lines);
  const inPart = await loopwright('samples', 'runs/long', '--sign-off', 'Ada');
  expect(inPart.stdout.match(/shown in part/g)).toHaveLength(1);
  // Three beside each other, and the longest of the last step, which is its best.
  expect(inPart.stdout).toContain('\n4 of 5 answers are shown in part: --full shows all.\n');
  expect(inPart.stdout).toMatch(/Signed off by Ada, .* at steps 1, 3, 4, some in part\n/);
  const whole = await loopwright('samples', 'runs/long', '--sign-off', 'Ada', '--full');
  expect(whole.stdout).not.toContain('shown in part');
  expect(whole.stdout).toMatch(/Signed off by Ada, .* at steps 1, 3, 4, in full\n/);
  // Events hold whole texts, whatever would be shown.
  const { events } = await loopwright('samples', 'runs/long', '--sign-off', 'Ada', '--json');
  expect(
    events.filter(({ type }) => type === 'sign-off').map(({ seen }) => (seen as { whole: unknown }).whole),
  ).toEqual(expect.arrayContaining([false, true]));
  expect(events.at(-1)).toMatchObject({ type: 'sign-off', seen: { samples: 5, whole: true } });
});

const guide = new URL('../docs/guides/samples.md', import.meta.url);

test('every command of the guide is one that the command line takes', async () => {
  const text = await readFile(guide, 'utf8');
  const commands = [...text.matchAll(/^npx loopwright (samples [^#\n]*)/gm)].map(([, line = '']) =>
    [...line.trim().matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? ''),
  );
  expect(commands).toHaveLength(5);
  for (const args of commands) {
    const own = args.map((arg) => (arg === 'runs/math' ? 'runs/toy' : arg === './my-task' ? 'task.mjs' : arg));
    const { code, stderr } = await loopwright(...own.map((arg) => (arg === '40' ? '4' : arg)));
    expect([args.join(' '), code, stderr]).toEqual([args.join(' '), 0, '']);
  }
});
