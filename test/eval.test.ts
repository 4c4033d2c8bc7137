/** `loopwright eval` from outside: a saved version against its base on held-out rows, suites, and what is attached. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand, startCommand } from './support/command.js';

const root = fileURLToPath(new URL('..', import.meta.url));
let folder: string;
let home: string;

/** Saves an adapter before and after a step on sums, in a run that keeps what it met; tells the names of both versions. */
const program = `
import { arithmetic, connect, defineTask, runGrpo, withRun } from 'loopwright';
const environment = arithmetic();
const problems = environment.problems({ split: 'rl', count: 4, seed: 1 });
const service = await connect();
const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 4, seed: 1 });
const names = [];
const save = async () => {
  const { modelPackageArn } = await training.saveWeightsForSampler({ description: 'for eval' });
  const { groupName, number } = await service.registry.get(modelPackageArn);
  names.push(groupName + '/' + number);
};
await save();
await withRun({ folder: 'runs/sums', config: {} }, (run) =>
  runGrpo({ training, environment, problems, steps: 1, groupsPerStep: 4, maxTokens: 8, onStep: run.onStep, onFixedSamples: run.onFixedSamples, onNotice: () => {} }),
);
await save();
console.log(names.join(' '));
await service.close();
`;

const taskOf = (heldOut: string): string => `
import { arithmetic, defineTask } from 'loopwright';
const environment = arithmetic();
export const task = defineTask({ name: 'sums', environment, heldOut: ${heldOut}, settings: { maxTokens: 8 } });
`;

let version: string;
let earlier: string;
const loopwright = (...args: string[]) => runCommand(args, { home, cwd: folder });
const inFolder = (...args: string[]) =>
  promisify(execFile)(process.execPath, args, {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', HOME: home, LOOPWRIGHT_HOME: home },
  });

/** A command that, in a process beside its shell, goes on writing to a file. */
const writesTo = (file: string): string => `(while :; do echo >> ${file}; sleep 0.1; done) & wait`;

/** Whether it still goes on. */
const grows = async (file: string): Promise<boolean> => {
  const { size } = await stat(join(folder, file));
  expect(size).toBeGreaterThan(0);
  await new Promise((resolve) => setTimeout(resolve, 500));
  return (await stat(join(folder, file))).size > size;
};

beforeAll(async () => {
  // Below the repository, where the packages are found as if they had been installed.
  await mkdir(join(root, 'tmp'), { recursive: true });
  folder = await mkdtemp(join(root, 'tmp', 'eval-'));
  home = join(folder, 'home');
  await writeFile(join(folder, 'program.mjs'), program);
  const { stdout } = await inFolder('program.mjs');
  [earlier = '', version = ''] = stdout.trim().split('\n').at(-1)?.split(' ') ?? [];
  await writeFile(join(folder, 'task.mjs'), taskOf("environment.problems({ split: 'held-out', count: 12, seed: 1 })"));
  await writeFile(join(folder, 'seen.mjs'), taskOf("environment.problems({ split: 'rl', count: 8, seed: 1 })"));
  const suite = `
const { LOOPWRIGHT_EVAL_ROLE: role, LOOPWRIGHT_EVAL_MODEL: model, LOOPWRIGHT_URL: url } = process.env;
const answer = await fetch(url + '/v1/models', { headers: { authorization: 'Bearer ' + process.env.LOOPWRIGHT_API_KEY } });
console.log(role, model);
for (let i = 0; i < 40; i++) console.log(JSON.stringify({ id: String(i), pass: answer.ok && (role === 'start' || i % 2 === 0) }));
`;
  await writeFile(join(folder, 'suite.mjs'), suite);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

test('a version is compared with its base in pairs, on rows that the run did not meet, and the results are attached', async () => {
  const { stdout, code } = await loopwright(
    'eval',
    'task.mjs',
    version,
    '--run',
    'runs/sums',
    '--timed',
    '2',
    '--json',
  );
  const [result] = stdout
    .split('\n')
    .filter((line) => line.includes('"evaluation"'))
    .map((line) => JSON.parse(line));
  expect(result).toMatchObject({
    ...{ type: 'evaluation', start: 'loopwright-tiny', task: 'sums', attached: true },
    comparison: { right: { n: 12, method: 'newcombe' }, tokens: { n: 12 }, latency: { n: 2 } },
    heldOut: expect.stringMatching(/^not known whether runs\/sums trained .*: it recorded no session$/),
  });
  expect(code).toBe(result.verdict === 'worse' ? 1 : 0);
  const { right } = result.comparison;
  expect(right.interval.low).toBeLessThanOrEqual(right.difference);
  expect(right.interval.high).toBeGreaterThanOrEqual(right.difference);
});

test('few rows of nearly the same model are not distinguishable yet, and that is said with n', async () => {
  const { stdout } = await loopwright('eval', 'task.mjs', version, '--problems', '4', '--timed', '0', '--no-attach');
  expect(stdout).toMatch(/right, % .* 4\n/);
  expect(stdout).toContain('not distinguishable yet');
  expect(stdout).toContain('Nothing is attached.');
});

test('rows that were trained on are refused, or left out when asked', async () => {
  const refused = await loopwright('eval', 'seen.mjs', version, '--run', 'runs/sums');
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringMatching(/rows that were never trained on[\s\S]*4 of 8 that were[\s\S]*--leave-out/),
  ]);
  const rest = ['--leave-out', '--timed', '0', '--no-attach'];
  const left = await loopwright('eval', 'seen.mjs', version, '--run', 'runs/sums', ...rest);
  expect(left.stderr).toContain('4 rows that were trained on are left out');
  expect(left.stdout).toContain('4 held-out rows');
  const unsure = await loopwright('eval', 'task.mjs', version, '--timed', '0', '--no-attach');
  expect(unsure.stderr).toContain('not compared with what was trained on: name the run with --run');
});

test('a suite that falls ends it with code 1; the command finds model and server in its environment', async () => {
  const args = ['--timed', '0', '--no-attach', '--regression', 'task.mjs', '--regression-command', 'node suite.mjs'];
  const { stdout, code } = await loopwright('eval', 'task.mjs', version, ...args);
  expect(code).toBe(1);
  expect(stdout).toMatch(/node suite\.mjs +100\.0 +50\.0 +.* 40 +fell/);
  const broken = await loopwright(
    'eval',
    'task.mjs',
    version,
    '--timed',
    '0',
    '--no-attach',
    '--regression-command',
    'exit 3',
  );
  expect([broken.code, broken.stderr]).toEqual([1, expect.stringContaining('code 3')]);
});

test('a grader that never answers ends it in time, with why', async () => {
  const task = taskOf("environment.problems({ split: 'held-out', count: 12, seed: 1 })");
  await writeFile(
    join(folder, 'never.mjs'),
    task.replace(
      'const environment = arithmetic();',
      `const sums = arithmetic();
const environment = { ...sums, problems: sums.problems, grade: () => new Promise(() => {}) };`,
    ),
  );
  const { code, stdout, stderr } = await loopwright('eval', 'never.mjs', version, '--timeout', '1', '--timed', '0');
  expect(stderr).toContain('grader: LoopwrightError: grade gave nothing within 1 s');
  expect(stderr).toContain('error grader_failed');
  expect({ code, stdout }).toEqual({
    code: 1,
    stdout: 'It ended after 0 of 12 rows: too few to compare. Nothing is attached.\n',
  });
});

test('a command of a suite that takes too long is ended with what it started, and what was measured before is shown', async () => {
  const args = ['eval', 'task.mjs', version, '--timed', '0', '--command-timeout', '2', '--regression-command'];
  const { code, stdout, stderr } = await loopwright(...args, 'node suite.mjs', `echo '{}'; ${writesTo('slow')}`);
  expect(stderr).toMatch(/ends within 2 s[\s\S]*had written 1 case for the start[\s\S]*--command-timeout/);
  expect(stdout).toMatch(/right, % .* 12\n/);
  expect(stdout).toMatch(/node suite\.mjs +100\.0 .* fell/);
  expect(stdout).toContain('command 1: 2 lines of its output are no cases');
  expect(stdout).toContain('A regression suite did not end, so nothing is attached.');
  expect(code).toBe(1);
  expect(await grows('slow')).toBe(false);
});

test('Ctrl-C while a suite goes on shows what was measured, and ends what goes on', async () => {
  const args = ['eval', 'task.mjs', version, '--timed', '0', '--json', '--regression-command', writesTo('stopped')];
  const running = startCommand(args, { home, cwd: folder });
  await running.output(/"suite":"command 1","role":"start"/);
  running.interrupt();
  const { code, events } = await running.end;
  expect(code).toBe(130);
  expect(events.find(({ type }) => type === 'evaluation-so-far')).toMatchObject({ comparison: { right: { n: 12 } } });
  expect(events.at(-1)).toMatchObject({ type: 'error', error: { code: 'cancelled' } });
  expect(await grows('stopped')).toBe(false);
});

test('a command of a suite is shown, and what the version keeps of it is its number: it may hold secrets', async () => {
  const command = 'TOKEN=hush node suite.mjs';
  const { stdout } = await loopwright('eval', 'task.mjs', version, '--timed', '0', '--regression-command', command);
  expect(stdout).toContain('TOKEN=hush');
  const kept = await inFolder(
    ...['--input-type=module', '-e'],
    `import { withService } from 'loopwright';
    await withService(async ({ registry }) => console.log(JSON.stringify(await registry.get(process.argv[1]))));`,
    version,
  );
  expect(kept.stdout).toContain('command 1: fell');
  expect(kept.stdout).not.toContain('hush');
});

test('a version is not compared with itself, and what it was not trained from is no start: an approval asks for that', async () => {
  const itself = await loopwright('eval', 'task.mjs', version, '--against', version, '--json');
  expect(itself.code).toBe(1);
  expect(itself.stdout).toContain('"expected":"another version than the one that is judged"');
  const other = await loopwright('eval', 'task.mjs', version, '--against', earlier, '--timed', '0');
  expect(other.stdout).toContain(`Attached to ${version}, under against/: ${earlier} is not what it started from`);
  const kept = await inFolder(
    ...['--input-type=module', '-e'],
    `import { withService } from 'loopwright';
    await withService(async ({ registry }) => {
      const { metrics } = await registry.get(process.argv[1]);
      console.log(metrics.filter(({ note }) => note.includes(process.argv[2])).map(({ name }) => name).join(' '));
    });`,
    ...[version, `against ${earlier}`],
  );
  expect(kept.stdout).toMatch(/^(against\/eval\/\w+ ?){6}\n$/);
});

test('a version that is not there is told with the folder that was looked into, and with the others', async () => {
  const other = join(home, 'data-2');
  await mkdir(other);
  const none = await loopwright('eval', 'task.mjs', 'sagemaker-default/99');
  await rm(other, { recursive: true });
  expect(none.stderr).toMatch(
    /unknown_version[\s\S]*got +sagemaker-default\/99, which does not exist, in (.*)\/data\n/,
  );
  expect(none.stderr).toContain(`another data directory (${other})`);
});

test('every command of the guide is one that the command line takes', async () => {
  const guide = await readFile(new URL('../docs/guides/evaluation.md', import.meta.url), 'utf8');
  const commands = [...guide.matchAll(/^npx loopwright (eval [^#\n]*)/gm)].map(([, line = '']) =>
    [...line.trim().matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? ''),
  );
  expect(commands).toHaveLength(3);
  const prices = '{"currency": "USD", "models": {"*": {"prefill": 0.1, "sample": 0.4, "training": 0.4}}}';
  await writeFile(join(folder, 'prices.json'), prices);
  const here: Readonly<Record<string, string>> = {
    ...{ './my-task': 'task.mjs', './old-task': 'task.mjs', 'runs/math': 'runs/sums' },
    ...{ 'math/12': version, 'math/9': earlier },
  };
  for (const args of commands) {
    const own = args.map((arg) => here[arg] ?? arg);
    const { stdout, code } = await loopwright(...own, '--timed', '1');
    // The suite of these tests falls.
    expect([args.join(' '), code]).toEqual([args.join(' '), args.includes('--regression-command') ? 1 : 0]);
    expect(stdout).toMatch(/right, % .* 12\n/);
    if (args.includes('--prices')) expect(stdout).toMatch(/1000 answers cost [\d.]+ USD of the start/);
  }
});
