import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { withRun } from '../runs/open-run.js';
import { readRecord } from '../runs/run-record.js';
import type { Task } from '../tasks/task.js';
import { Bandit, copyEnvironment, copyProblem } from '../testing/bandit.js';
import { runGrpo } from '../training/grpo.js';
import { checkGate, readGate, writeGate } from './gate-file.js';
import { requireGate } from './require-gate.js';
import { testGrader } from './test-grader.js';

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gate-'));
  file = join(folder, 'grader-gate.json');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const task: Task = { name: 'copy', environment: copyEnvironment, train: [copyProblem(1), copyProblem(2)] };
const lenient: Task = {
  ...task,
  environment: { ...copyEnvironment, grade: ({ text }) => ({ status: 'ok', reward: text === '' ? 0 : 1 }) },
};

it('lets a run begin whose grader passed, as it is now', async () => {
  await writeGate(file, (await testGrader(task)).result);
  expect(await checkGate({ file, task })).toMatchObject({ outcome: 'passed' });
});

it('refuses a grader that failed, unless a reason is given, which is recorded with its time', async () => {
  await writeGate(file, (await testGrader(lenient)).result);
  await expect(checkGate({ file })).rejects.toMatchObject({
    code: 'grader_gate_failed',
    details: { findings: ['grader/accepts-bad'] },
  });
  await expect(checkGate({ file, override: 'because' })).rejects.toMatchObject({ code: 'invalid_argument' });
  const reason = 'to see what it does to the model';
  expect(await checkGate({ file, override: reason, now: () => 0 })).toMatchObject({ outcome: 'overridden', reason });
  expect((await readGate(file)).overrides).toEqual([{ reason, at: '1970-01-01T00:00:00.000Z' }]);
  expect(() =>
    requireGate({ result: { ...JSON.parse('{"outcome":"fail","findings":[]}'), format: 'x' } as never, override: '' }),
  ).toThrow('override');
});

it('refuses a result of other cases or of another grader', async () => {
  await writeGate(file, (await testGrader(task)).result);
  await expect(checkGate({ file, task: lenient })).rejects.toThrow('what it says of them changed');
  await expect(checkGate({ file, task: { ...task, train: [copyProblem(3)] } })).rejects.toThrow('its cases changed');
});

it('refuses a file that is none, or was changed by hand', async () => {
  await expect(checkGate({ file })).rejects.toMatchObject({ code: 'not_found' });
  await writeGate(file, (await testGrader(lenient)).result);
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace('"fail"', '"pass"'));
  await expect(checkGate({ file })).rejects.toThrow('changed after it was written');
  await writeFile(file, '{');
  await expect(checkGate({ file })).rejects.toThrow('no JSON');
});

it('a run asks its gate before anything else, and tells why it was overridden', async () => {
  const run = { training: new Bandit(), environment: copyEnvironment, steps: 2, maxTokens: 1 };
  const { result } = await testGrader(lenient);
  const refused = new Bandit();
  await expect(runGrpo({ ...run, training: refused, graderGate: result })).rejects.toMatchObject({
    code: 'grader_gate_failed',
  });
  expect(refused.calls).toEqual([]);
  const warnings: (readonly string[])[] = [];
  const override = 'to see what it does to the model';
  const ended = await runGrpo({
    ...run,
    graderGate: { result, override },
    onStep: (step) => void warnings.push(step.warnings),
  });
  expect(ended.graderGate).toMatchObject({ outcome: 'overridden', reason: override });
  expect(warnings).toEqual([[expect.stringContaining(override)], []]);
  const passed = await runGrpo({ ...run, graderGate: (await testGrader(task)).result });
  expect(passed.graderGate).toMatchObject({ outcome: 'passed' });
});

it('a run folder keeps each decision of its gate once, with reason, findings, step and time', async () => {
  const { result } = await testGrader(lenient);
  const at = { folder: join(folder, 'run'), config: {}, now: () => 0 };
  const train = (steps: number, override: string, options: object) =>
    withRun({ ...at, ...options }, (run) =>
      runGrpo({
        ...{ training: new Bandit(), environment: copyEnvironment, steps, maxTokens: 1 },
        graderGate: { result, override },
        onStep: run.onStep,
      }),
    );
  const reason = 'to see what it does to the model';
  await train(2, reason, {});
  const kept = { at: '1970-01-01T00:00:00.000Z', outcome: 'overridden', findings: ['grader/accepts-bad'] };
  const whole = { ...kept, step: 1, casesHash: result.casesHash, reason };
  expect((await readRecord(at.folder)).graderGates).toEqual([whole]);
  await train(1, reason, { resumeAfter: 2 });
  expect((await readRecord(at.folder)).graderGates).toEqual([whole]);
  await train(1, 'another reason to go on', { resumeAfter: 2 });
  expect((await readRecord(at.folder)).graderGates).toMatchObject([whole, { reason: 'another reason to go on' }]);
});
