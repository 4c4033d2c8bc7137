/** `loopwright grader test` from outside: what it shows, its file and its exit code. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { arithmetic, checkGate, connect, readGate, runGrpo, withRun } from 'loopwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from './support/command.js';

const root = fileURLToPath(new URL('..', import.meta.url));
let parent: string;
let home: string;

beforeAll(async () => {
  // Below the repository, where the packages are found as if they had been installed.
  await mkdir(join(root, 'tmp'), { recursive: true });
  parent = await mkdtemp(join(root, 'tmp', 'grader-test-'));
  home = join(parent, 'home');
});

afterAll(() => rm(parent, { recursive: true, force: true }));

test('the task that new writes, in TypeScript, passes, and a run may begin', async () => {
  await runCommand(['new', 'mine'], { home, cwd: parent });
  const { code, stdout, stderr } = await runCommand(['grader', 'test', 'mine'], { home, cwd: parent });
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(stdout).toMatch(/good {2}30 {15}0\n/);
  expect(stdout).toMatch(/\nThe grader of mine passes\. Written to mine\/grader-gate\.json\.\n$/);
  expect(await checkGate({ file: join(parent, 'mine', 'grader-gate.json') })).toMatchObject({ outcome: 'passed' });
});

test('a grader that takes wrong answers for right fails, with the wrong ones shown safely', async () => {
  const folder = join(parent, 'loose');
  await cp(join(parent, 'mine'), folder, { recursive: true });
  // Finds the answer anywhere, as a pattern would.
  const loose = `export const grade = (text, expected) => ({ status: 'ok', reward: text.includes(String(expected)) ? 1 : 0 });\n`;
  await writeFile(join(folder, 'grader.ts'), loose);
  const task = await readFile(join(folder, 'task.ts'), 'utf8');
  const problem = `{ id: '\\u001b[2J', question: '3-1=', answer: '2', expected: 2 }`;
  const cases = `cases: [{ problem: ${problem}, label: 'bad', completion: '\\u001b[2Jnot 2', kind: 'negated' }, { problem: ${problem}, label: 'good', completion: '2' }],`;
  await writeFile(join(folder, 'task.ts'), task.replace('environment,\n', `environment, ${cases}\n`));
  const { code, stdout } = await runCommand(['grader', 'test', join(folder, 'task.ts')], { home, cwd: parent });
  expect(code).toBe(1);
  expect(stdout).toContain('stop  grader/accepts-bad');
  expect(stdout).toContain('bad (negated), \\x1b[2J: reward 1 for “\\x1b[2Jnot 2”');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  expect(stdout).not.toMatch(/\u001b/);
  await expect(checkGate({ file: join(folder, 'grader-gate.json') })).rejects.toMatchObject({
    code: 'grader_gate_failed',
  });
  const json = await runCommand(['grader', 'test', folder, '--json', '--labelled-only'], { home, cwd: parent });
  expect(json.code).toBe(1);
  expect(json.events.at(-1)).toMatchObject({
    type: 'grader-test',
    outcome: 'fail',
    confusion: { goodAccepted: 1, badAccepted: 1 },
  });
});

test('a grader that never gives the thread back ends the command, which says where, and its old result is gone', async () => {
  const folder = join(parent, 'stuck');
  await mkdir(folder);
  const task = (body: string) => `import { defineTask } from 'loopwright';
const problem = { id: 'one', question: '1+1=', answer: '2' };
const grade = ({ text }) => { ${body} return { status: 'ok', reward: text === '2' ? 1 : 0 }; };
export const task = defineTask({ name: 'stuck', environment: { name: 'stuck', draw: () => problem, grade }, train: [problem] });
`;
  await writeFile(join(folder, 'task.mjs'), task(''));
  expect(await runCommand(['grader', 'test', folder], { home })).toMatchObject({ code: 0, stderr: '' });
  expect(await readdir(folder)).toContain('grader-gate.json');
  await writeFile(join(folder, 'task.mjs'), task("while (text === '');"));
  const { code, stderr } = await runCommand(['grader', 'test', folder, '--timeout', '1'], { home });
  expect(code).not.toBe(0);
  expect(stderr).toContain('held the thread for 1 s, at bad (empty), one');
  expect(await readdir(folder)).toEqual(['task.mjs']);
});

test.each([
  [
    'ends the process',
    'process.exit(0)',
    'the grader ended the process, with exit code 0; the last that began was bad (empty), one',
  ],
  [
    'throws where nobody waits',
    "setTimeout(() => { throw new TypeError('\\u001b[2Jlost') }); return new Promise(() => {})",
    'thrown where nobody waits for it, by the grader: TypeError: \\x1b[2Jlost',
  ],
  [
    'leaves a rejection to nobody',
    "void Promise.reject(new Error('lost')); return new Promise(() => {})",
    'thrown where nobody waits for it, by the grader: Error: lost',
  ],
])('a grader that %s fails the command, which says so, and its old result is gone', async (name, body, told) => {
  const folder = join(parent, name.replaceAll(' ', '-'));
  await mkdir(folder);
  const task = (bad: string) => `import { defineTask } from 'loopwright';
const problem = { id: 'one', question: '1+1=', answer: '2' };
const grade = ({ text }) => { if (text === '') { ${bad} } return { status: 'ok', reward: text === '2' ? 1 : 0 }; };
export const task = defineTask({ name: 'crash', environment: { name: 'crash', draw: () => problem, grade }, train: [problem] });
`;
  await writeFile(join(folder, 'task.mjs'), task(''));
  expect(await runCommand(['grader', 'test', folder], { home })).toMatchObject({ code: 0 });
  await writeFile(join(folder, 'task.mjs'), task(body));
  const { code, stderr, stdout } = await runCommand(['grader', 'test', folder], { home });
  expect(stderr).toContain(`error grader_failed: ${told}`);
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(await readdir(folder)).toEqual(['task.mjs']);
  const { events } = await runCommand(['grader', 'test', folder, '--json'], { home });
  expect(events.at(-1)).toMatchObject({
    type: 'error',
    error: { code: 'grader_failed', details: { field: 'grader' } },
  });
});

test('a grader that ends the process while checkGate tries it does not pass for a run that ended well', async () => {
  const folder = join(parent, 'leaves');
  await mkdir(folder);
  await writeFile(
    join(folder, 'run.mjs'),
    `import { checkGate, defineTask } from 'loopwright';
import { task as kept } from './task.mjs';
let leave = false;
const grade = (answer) => leave ? process.exit(0) : kept.environment.grade(answer);
const task = defineTask({ ...kept, environment: { ...kept.environment, grade } });
await checkGate({ file: new URL('grader-gate.json', import.meta.url).pathname, task });
leave = true;
await checkGate({ file: new URL('grader-gate.json', import.meta.url).pathname, task });
`,
  );
  const task = `import { defineTask } from 'loopwright';
const problem = { id: 'one', question: '1+1=', answer: '2' };
const grade = ({ text }) => ({ status: 'ok', reward: text === '2' ? 1 : 0 });
export const task = defineTask({ name: 'leaves', environment: { name: 'leaves', draw: () => problem, grade }, train: [problem] });
`;
  await writeFile(join(folder, 'task.mjs'), task);
  expect(await runCommand(['grader', 'test', folder], { home })).toMatchObject({ code: 0 });
  const ended = promisify(execFile)(process.execPath, [join(folder, 'run.mjs')]);
  await expect(ended).rejects.toMatchObject({
    code: 1,
    stderr: 'The program ended while its grader was tested, before the run began: no grader may call process.exit.\n',
  });
});

test('failures are told with their reason, once, and what changed with each result', async () => {
  const folder = join(parent, 'shaky');
  await mkdir(folder);
  const task = `import { defineTask } from 'loopwright';
const problems = [2, 4].map((n) => ({ id: 'p' + n, question: n + '+1=', answer: String(n + 1) }));
let calls = 0;
const grade = ({ text, problem }) => {
  if (text === '') throw new TypeError('no text');
  return { status: 'ok', reward: text === problem.answer ? 1 + (calls++ % 4) : 0 };
};
export const task = defineTask({ name: 'shaky', environment: { name: 'shaky', draw: () => problems[0], grade }, train: problems, badFromGood: { without: ['several-answers'] } });
`;
  await writeFile(join(folder, 'task.mjs'), task);
  const { code, stdout } = await runCommand(['grader', 'test', folder], { home });
  expect(code).toBe(1);
  expect(stdout.match(/TypeError: no text/g)).toHaveLength(1);
  expect(stdout).toContain('  bad (empty), p4: grader_error for “”\n');
  expect(stdout).toMatch(/Not the same again\n {2}good \(answer\), p2: reward \d, then reward \d, then reward \d\n/);
  expect(stdout).toContain('stop  grader/not-deterministic');
});

test('completions that took too long are graded once, and it says so', async () => {
  const folder = join(parent, 'late');
  await mkdir(folder);
  const task = `import { defineTask } from 'loopwright';
const problems = [2, 4].map((n) => ({ id: 'p' + n, question: n + '+1=', answer: String(n + 1) }));
const grade = ({ text, problem }) =>
  text === '' ? new Promise(() => setInterval(() => {}, 1000)) : { status: 'ok', reward: text === problem.answer ? 1 : 0 };
export const task = defineTask({ name: 'late', environment: { name: 'late', draw: () => problems[0], grade }, train: problems });
`;
  await writeFile(join(folder, 'task.mjs'), task);
  const { code, stdout } = await runCommand(['grader', 'test', folder, '--timeout', '1'], { home });
  expect(code).toBe(1);
  expect(stdout).toMatch(/made, each graded 3 times, or until it took too long\n/);
  expect(stdout).toMatch(/2 of \d+ completions were not graded in their time/);
  expect(stdout).toContain('  bad (empty), p2: timeout for “”\n');
});

test('a grader that keeps the processor busy is told that calls at once do not help', async () => {
  const folder = join(parent, 'busy');
  await mkdir(folder);
  const task = `import { defineTask } from 'loopwright';
const problems = [2, 4].map((n) => ({ id: 'p' + n, question: n + '+1=', answer: String(n + 1) }));
const grade = ({ text, problem }) => {
  for (const end = performance.now() + 10; performance.now() < end; );
  return { status: 'ok', reward: text === problem.answer ? 1 : 0 };
};
export const task = defineTask({ name: 'busy', environment: { name: 'busy', draw: () => problems[0], grade }, train: problems });
`;
  await writeFile(join(folder, 'task.mjs'), task);
  const args = ['grader', 'test', folder, '--step-seconds', '0.9'];
  const { code, stdout } = await runCommand(args, { home });
  expect(code).toBe(0);
  expect(stdout).toMatch(/at once +[\d.]+ calls a second, 16 at once, [\d.]+ × as fast as alone: the processor, or/);
  expect(stdout).toMatch(
    /needed +[\d.]+ × as fast as alone, to stay under 10 % of a step whose rest takes 0\.9 s: which calls at once don’t give/,
  );
  expect(stdout).toContain('warn  grader/slow');
});

test('a run with that grader is refused, or keeps why it was let in', async () => {
  const { result } = await readGate(join(parent, 'loose', 'grader-gate.json'));
  await using service = await connect({ dataDir: join(parent, 'data') });
  const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 8, seed: 1 });
  const size = { steps: 1, groupsPerStep: 2, samplesPerGroup: 4, maxTokens: 8 };
  const run = { training, environment: arithmetic(), ...size, onNotice: () => undefined };
  await expect(runGrpo({ ...run, graderGate: result })).rejects.toMatchObject({ code: 'grader_gate_failed' });
  const folder = join(parent, 'overridden');
  const override = 'to see what it does to the model';
  await withRun({ folder, config: {} }, ({ onStep }) => runGrpo({ ...run, onStep, graderGate: { result, override } }));
  const shown = await runCommand(['runs', 'show', folder], { home });
  expect(shown.stdout).toMatch(
    /grader test +failed \(grader\/constant\) and overridden at step 1: to see what it does/,
  );
  await runCommand(['report', folder], { home });
  expect(await readFile(join(folder, 'report.html'), 'utf8')).toContain(`overridden at step 1: ${override}`);
});

test('a task that is not there is refused', async () => {
  const none = await runCommand(['grader', 'test', 'nowhere'], { home, cwd: parent });
  expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining('error not_found: task') });
});

test('the command ends for a task whose grader holds a sandbox open, and its processes and files are gone', async () => {
  const folder = join(parent, 'open');
  const temporary = join(parent, 'temporary');
  await mkdir(folder);
  await mkdir(temporary);
  const task = `import { createGrader, createPythonSandbox, defineTask, unitTests } from 'loopwright';
const sandbox = await createPythonSandbox({ workers: 1, timeoutMs: 60_000 });
const problem = { id: 'one', question: 'Add.', answer: '' };
const tests = () => ({ type: 'calls', cases: [{ entry: 'add', args: [1, 2], expected: 3 }] });
const program = (body) => '\`\`\`python\\ndef add(a, b):\\n    return ' + body + '\\n\`\`\`';
export const task = defineTask({
  name: 'open',
  environment: { name: 'open', draw: () => problem, grade: createGrader({ components: [unitTests({ sandbox, tests })] }) },
  cases: [
    { problem, label: 'good', completion: program('a + b') },
    { problem, label: 'bad', completion: program('a - b') },
  ],
});
`;
  await writeFile(join(folder, 'task.mjs'), task);
  const { code, stdout, stderr } = await runCommand(
    ['grader', 'test', folder, '--labelled-only', '--repeats', '1', '--timeout', '200'],
    { home, cwd: parent, env: { TMPDIR: temporary } },
  );
  expect(stderr).not.toContain('error');
  expect(stdout).toContain('The grader of open passes.');
  expect(code).toBe(0);
  expect(await readdir(temporary)).toEqual([]);
});
