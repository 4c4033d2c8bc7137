/** Runs that are killed anywhere and gone on with: weights, metrics, samples and alarms are those of a run that nobody disturbed. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { connect, readCheckpoints, readRun, ServiceClient } from 'loopwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LifeEnd, type LifeOptions, type Outcome, outcomeOf, runFolder, startLife } from './resume/lives.js';
import { type RunningCommand, startCommand } from './support/command.js';
import { makeTinyModel } from './support/tiny-model.js';

let directory: TemporaryDirectory;
let model: string;
const calm = new Map<'grpo' | 'sft', Outcome>();

beforeAll(async () => {
  directory = await temporaryDirectory();
  model = await makeTinyModel(join(directory.path, 'model'));
  for (const kind of ['grpo', 'sft'] as const) {
    const folder = join(directory.path, `calm-${kind}`);
    calm.set(kind, await outcomeOf(folder, await startLife({ folder, model, kind }).end));
  }
}, 600_000);

afterAll(() => directory[Symbol.asyncDispose]());

/** Lives of a run one after another, each killed where it says; the last lives to its end. */
async function live(
  folder: string,
  deaths: readonly string[],
  options: Pick<LifeOptions, 'kind'>,
): Promise<{ readonly outcome: Outcome; readonly last: LifeEnd }> {
  for (const [i, die] of deaths.entries()) {
    const { code, stdout, stderr } = await startLife({ ...options, folder, model, die, resumes: i > 0 }).end;
    expect({ die, code, stderr: code === null ? '' : stdout + stderr }).toEqual({ die, code: null, stderr: '' }); // by the signal, not by itself
  }
  const last = await startLife({ ...options, folder, model, resumes: true }).end;
  return { outcome: await outcomeOf(folder, last), last };
}

test('an undisturbed run has something to lose: weights that moved, epochs, measurements, alarms', () => {
  const { weights, metrics, samples, alarms } = calm.get('grpo')!;
  expect(weights.some((file) => file.includes('.safetensors '))).toBe(true);
  expect(metrics.map(({ type, step }) => `${type} ${step}`)).toEqual([
    ...['validation 0', 'step-end 1', 'step-end 2', 'step-end 3', 'validation 3'],
    ...['step-end 4', 'step-end 5', 'step-end 6', 'validation 6'],
  ]);
  expect(samples).toHaveLength(6 * 3 * 4 + 3 * 2);
  for (const line of metrics.filter(({ type }) => type === 'step-end')) expect(line['ratio/max']).toBeCloseTo(1, 4);
  expect(calm.get('sft')!.weights).not.toEqual(weights);
  // The last is made of what both processes saw where one is killed after step 2; the first is not told again by each.
  const names = ['guard/learning-rate 1', 'guard/rows-twice 2', 'guard/rows-lost 4'];
  expect(alarms.map(({ name, step }) => `${name} ${step}`)).toEqual(names);
});

describe('a run whose process and server are killed', () => {
  test('goes on to the same bits, wherever it was', async () => {
    const folder = join(directory.path, 'killed');
    const deaths = [
      'save-state-done:1', // the state after step 2 is saved, its record isn't
      'recorded:1', // it is, and nothing else happened
      'optim-step:1', // step 3 has a gradient, and no step
      'optim-step-done:2', // step 4 is made, and not told
      'save-state-done:1', // the state after step 4 is saved, its record isn't
      'kept:3', // step 5 is told, and will be done again
      'recorded:1', // after step 6, the last
    ];
    const { outcome, last } = await live(folder, deaths, { kind: 'grpo' });
    expect(last.stderr).toContain('nothing left to train: the run has its 6 steps');
    expect(outcome).toEqual(calm.get('grpo'));
    const { record, state } = await readRun(runFolder(folder));
    const { checkpoints } = await readCheckpoints(runFolder(folder));
    await using service = await connect({ dataDir: record.session!.place });
    const states = await service.listModelPackages({ kind: 'state' });
    const kept = states.filter(({ description }) => description.startsWith('checkpoint of run '));
    const arns = (of: readonly { readonly modelPackageArn: string }[]) => of.map((each) => each.modelPackageArn);
    expect(arns(kept)).toEqual(arns(checkpoints)); // none that a kill left without a record
    expect(record.resumed?.map(({ afterStep }) => afterStep)).toEqual([0, 2, 2, 2, 2, 4, 6]);
    expect([state, checkpoints.map(({ step }) => step)]).toEqual(['done', [6, 4]]);
  });

  test('does so with supervised training too', async () => {
    const folder = join(directory.path, 'killed-sft');
    const deaths = ['optim-step-done:2', 'save-state-done:1', 'kept:3', 'optim-step:1'];
    const { outcome } = await live(folder, deaths, { kind: 'sft' });
    expect(outcome).toEqual(calm.get('sft'));
  });
});

describe('a run on a server of its own', () => {
  let server: { readonly command: RunningCommand; readonly url: string };
  const data = () => join(directory.path, 'served');

  async function serve(port = 0): Promise<typeof server> {
    const args = ['serve', '--json', '--data', data(), '--model', `tiny=${model}`, '--port', String(port)];
    const command = startCommand([...args, '--max-sessions', '1'], { home: join(directory.path, 'server-home') });
    const url = String(/"url":"([^"]+)"/.exec(await command.output(/"type":"listening"/))?.[1]);
    return { command, url };
  }
  /** It comes back on its port. */
  async function killServer(): Promise<void> {
    server.command.child.kill('SIGKILL');
    await server.command.end;
    server = await serve(Number(new URL(server.url).port));
  }

  test('goes on to the same bits when the loop, the server, or both are killed', async () => {
    server = await serve();
    const folder = join(directory.path, 'on-a-server');
    const options = { folder, model, kind: 'grpo', url: server.url } as const;

    // The server alone, while a pass is under way; then the loop alone.
    const first = startLife({ ...options, hold: 'optim-step:2', die: 'optim-step:5' });
    await first.says(/held at optim-step/);
    await killServer();
    expect((await first.end).code).toBe(null);

    // Both: a state is saved, its record isn't.
    const second = startLife({ ...options, resumes: true, hold: 'save-state-done:1' });
    await second.says(/held at save-state-done/);
    second.child.kill('SIGKILL');
    await second.end;
    await killServer();

    // The server once more, in the middle of sampling.
    const third = startLife({ ...options, resumes: true, hold: 'grade:5' });
    await third.says(/held at grade/);
    await killServer();
    third.goOn();
    const last = await third.end;
    expect(await outcomeOf(folder, last)).toEqual(calm.get('grpo'));
    expect(last.stdout).toContain('"others":0');

    const service = new ServiceClient({ baseUrl: server.url });
    const states = await service.listModelPackages({ kind: 'state' });
    const kept = (await readCheckpoints(runFolder(folder))).checkpoints.map(({ modelPackageArn }) => modelPackageArn);
    expect(states.map(({ modelPackageArn }) => modelPackageArn)).toEqual(expect.arrayContaining(kept));
    await service.close();
    server.command.interrupt();
    await server.command.end;
  });
});

describe('Ctrl-C', () => {
  test('saves, and says the command that goes on; typed as it stands, it comes to the same bits', async () => {
    const folder = join(directory.path, 'interrupted');
    const life = startLife({ folder, model, kind: 'grpo', hold: 'grade:40' });
    await life.says(/held at grade/);
    life.child.kill('SIGINT');
    const { code, stderr } = await life.end;
    expect([code, stderr]).toEqual([
      130,
      expect.stringMatching(/Stopping: .*\nInterrupted: checkpoint after step 3; go on with: /),
    ]);
    const command = stderr.slice(stderr.indexOf('go on with: ') + 'go on with: '.length).trim();
    const env = { PATH: process.env.PATH ?? '', HOME: folder, LOOPWRIGHT_HOME: join(folder, 'home') };
    const { stdout } = await promisify(execFile)('sh', ['-c', command.replace(/ --hold \S+/, '')], { env });
    expect(await outcomeOf(folder, { stdout })).toEqual(calm.get('grpo'));
  });

  test('a second time ends at once; the run goes on from its last checkpoint', async () => {
    const folder = join(directory.path, 'twice');
    const life = startLife({ folder, model, kind: 'grpo', hold: 'save-state-done:2' });
    await life.says(/held at save-state-done/);
    life.child.kill('SIGINT');
    await life.says(/Stopping: /);
    life.child.kill('SIGINT');
    const { code, stderr } = await life.end;
    expect([code, stderr]).toEqual([
      130,
      expect.stringContaining('Ended at once: checkpoint after step 2; go on with: '),
    ]);
    expect((await readRun(runFolder(folder))).state).toBe('killed');
    const { outcome } = await live(folder, [], { kind: 'grpo' });
    expect(outcome).toEqual(calm.get('grpo'));
  });
});

describe('what is refused, or said', () => {
  test('another setting, with old and new value; a run that is done; more steps go on', async () => {
    const folder = join(directory.path, 'changed');
    const first = await startLife({ folder, model, kind: 'sft', more: ['--steps', '3'] }).end;
    expect(first.code).toBe(0);
    const again = { folder, model, kind: 'sft', resumes: true } as const;
    const done = await startLife({ ...again, more: ['--steps', '3'] }).end;
    expect([done.code, done.stderr]).toEqual([
      1,
      expect.stringMatching(/one that is done, after its 3 steps; raise its steps/),
    ]);
    const other = await startLife({ ...again, more: ['--rate', '0.002'] }).end;
    expect([other.code, other.stderr]).toEqual([
      1,
      expect.stringContaining('config.learningRate (0.01 then, 0.002 now)'),
    ]);
    const last = await startLife(again).end;
    expect(last.stderr).toMatch(/Changed: config.steps \(3 then, 6 now\)\nrun goes on after step 3/);
    const { weights, state } = await outcomeOf(folder, last);
    expect({ weights, state }).toEqual({ weights: calm.get('sft')!.weights, state: calm.get('sft')!.state });
  });

  test('a checkpoint whose state is gone: the one before it is gone on with', async () => {
    const folder = join(directory.path, 'lost');
    await startLife({ folder, model, kind: 'sft', die: 'kept:5' }).end;
    const path = join(runFolder(folder), 'checkpoint.json');
    const newest = (await readCheckpoints(runFolder(folder))).checkpoints[0]!.modelPackageArn;
    await writeFile(path, (await readFile(path, 'utf8')).replace(newest, newest.replace(/\d+$/, '999')));
    const { outcome, last } = await live(folder, [], { kind: 'sft' });
    expect(last.stderr).toMatch(/The state of the checkpoint after step 4 is gone.\nrun goes on after step 2/);
    expect(outcome).toEqual(calm.get('sft'));
  });
});
