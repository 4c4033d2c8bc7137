/** Run folders from outside: what a program kept is listed, shown, compared, repeated and reported by the command. */
import { execFile } from 'node:child_process';
import { appendFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCommand } from './support/command.js';

let folder: TemporaryDirectory;
let home: string;

/** A program that keeps a run of three steps; `RATE` is its setting. */
const program = `
import { withRun } from ${JSON.stringify(import.meta.resolve('loopwright'))};
const rate = Number(process.argv[2]);
const text = '<script>alert(1)</script>\\u001b[31mred';
const rollout = { text, reward: 1, grade: { status: 'ok', reward: 1 }, sequence: { tokens: [1, 2], logprobs: [-0.5, -1], stopReason: 'stop' } };
await withRun({ folder: 'runs/toy', config: { rate, note: '<img src=x>' }, seeds: { seed: 7 } }, async (run) => {
  for (let step = 1; step <= 3; step++) {
    const groups = [{ problem: { id: 'p', question: 'What is <b>1+1</b>?' }, prompt: [5], rollouts: [rollout] }];
    const alarm = { name: 'guard/ratio', level: 'warn', step, seen: '<b>0.3</b>', remedy: 'look', times: 1, page: 'docs/guides/guard/ratio.md' };
    const alarms = step === 2 ? [alarm] : [];
    await run.onStep({ type: 'step-end', step, metrics: { 'reward/mean': step * rate, 'grade/errors': 0 }, groups, alarms });
  }
});
`;

beforeEach(async () => {
  folder = await temporaryDirectory();
  home = join(folder.path, 'home');
  await writeFile(join(folder.path, 'program.mjs'), program);
});

afterEach(() => folder[Symbol.asyncDispose]());

const loopwright = (...args: string[]) => runCommand(args, { home, cwd: folder.path });

async function runProgram(rate: number): Promise<void> {
  await promisify(execFile)(process.execPath, ['program.mjs', String(rate)], {
    cwd: folder.path,
    env: { PATH: process.env.PATH ?? '', HOME: home },
  });
}

test('two runs of a program are listed, shown and compared', async () => {
  expect((await loopwright('runs')).stdout).toMatch(/^No runs in .*runs: openRun in a program makes one/);
  await runProgram(0.1);
  await runProgram(0.2);
  const { events } = await loopwright('runs', '--json');
  expect(events).toMatchObject([
    { type: 'run', name: 'toy', state: 'done', step: 3 },
    { type: 'run', name: 'toy-2', metrics: { 'reward/mean': 0.6000000000000001 } },
  ]);
  const shown = await loopwright('runs', 'show', 'runs/toy');
  expect(shown.stdout).toMatch(
    /seed 7[\s\S]*loopwright 0\.\d[\s\S]*program\.mjs 0\.1[\s\S]*"rate": 0\.1[\s\S]*reward\/mean +3 +0\.1 +0\.1 +0\.3 +0\.3/,
  );
  expect(shown.stdout).toMatch(/Alarms:\n {2}guard\/ratio \[warn\] at step 2: <b>0\.3<\/b>\. Look\. See docs/);
  const compared = await loopwright('runs', 'compare', 'runs/toy', 'runs/toy-2', '--json');
  expect(compared.events).toMatchObject([
    {
      changes: [{ path: 'config.rate', a: 0.1, b: 0.2 }],
      metrics: [
        { name: 'grade/errors', differing: 0 },
        { name: 'reward/mean', n: 3, step: 3, differing: 3, firstDifference: 1 },
      ],
    },
  ]);
  expect(compared.stderr).toBe('');
  await appendFile(join(folder.path, 'runs/toy/metrics.jsonl'), '{"step":4,');
  const damaged = await loopwright('runs', 'show', 'runs/toy');
  expect(damaged.stderr).toBe('runs/toy/metrics.jsonl: 1 line can’t be read and left out, the first is line 4\n');
  const missing = await loopwright('runs', 'show', 'runs/none');
  expect([missing.code, missing.stderr]).toEqual([1, expect.stringContaining('a run folder, with run.json in it')]);
});

test('a run is repeated only when asked, beside the first, and says whether it came out the same', async () => {
  await runProgram(0.1);
  const asked = await loopwright('runs', 'repeat', 'runs/toy');
  expect(asked.stdout).toMatch(/program\.mjs 0\.1\n[\s\S]*Nothing was run/);
  const done = await loopwright('runs', 'repeat', 'runs/toy', '--yes', '--json');
  expect(done.events.at(-1)).toMatchObject({ type: 'repeated', state: 'done', changes: [], differing: [] });
  const [first, second] = (await loopwright('runs', '--json')).events;
  expect(JSON.parse(await readFile(join(folder.path, 'runs', 'toy-2', 'run.json'), 'utf8'))).toMatchObject({
    id: second?.id,
    repeatOf: first?.id,
  });
});

test('a run of other versions is not repeated unless one insists', async () => {
  await runProgram(0.1);
  const path = join(folder.path, 'runs', 'toy', 'run.json');
  await writeFile(path, (await readFile(path, 'utf8')).replace(process.version, 'v20.0.0'));
  const refused = await loopwright('runs', 'repeat', 'runs/toy', '--yes');
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/others: node[\s\S]*--allow-changes/)]);
  expect((await loopwright('runs', 'repeat', 'runs/toy', '--yes', '--allow-changes')).code).toBe(0);
});

test('a report is one file that loads and runs nothing, with all content as text', async () => {
  await runProgram(0.1);
  const { code, stdout } = await loopwright('report', 'runs/toy');
  expect([code, stdout]).toEqual([0, expect.stringContaining('report.html')]);
  const page = await readFile(join(folder.path, 'runs', 'toy', 'report.html'), 'utf8');
  expect(page).toContain("default-src 'none'");
  expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31mred');
  expect(page).toContain('What is &lt;b&gt;1+1&lt;/b&gt;?');
  expect(page).toContain('&lt;img src=x&gt;');
  expect(page).toContain('guard/ratio [warn] at step 2: &lt;b&gt;0.3&lt;/b&gt;. Look.');
  expect(page).not.toContain('\u001b');
  expect(page).not.toMatch(/<script|<img|<b>1|https?:\/\/|src=["']|href=/i);
  // At three steps, and the best of the last.
  expect(page.match(/class="sample"/g)).toHaveLength(4);
  expect(page).toContain('reward/mean: 0.1 at step 1, 0.3 at step 3');
  expect(page.match(/<svg/g)).toHaveLength(1); // what never changed is said in words
  expect(page).toContain('<dt>grade/errors</dt><dd><b>0</b> at all 3 steps</dd>');
});
