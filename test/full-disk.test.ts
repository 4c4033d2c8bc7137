/**
 * A disk without room, for real: the system refuses every write of the server, or of its engine, while the calls of a loop come in.
 * What fails says so, nothing is lost, and the session goes on once there is room. `prlimit` (Linux) plays the disk; that each
 * place of the server reports a full disk on any system is tested beside it.
 */
import { execFileSync } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { type DatumFor, ServiceClient, type TrainingClient } from 'loopwright';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type RunningCommand, runCommand, startCommand } from './support/command.js';
import { expectRefusal, failureOf } from './support/failure.js';
import { makeTinyModel } from './support/tiny-model.js';

const datum: DatumFor<'cross_entropy'> = {
  modelInput: [5, 6, 7],
  lossFnInputs: { targetTokens: [6, 7, 8], weights: [0, 1, 1] },
};
const noRoom = { code: 'disk_full', field: /./, expected: /free/, got: /./, remedy: /free some space/ } as const;

/** From now on every write of a process to a file fails, or none does. */
function setRoom(pid: number, room: 'none' | 'enough'): void {
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${room === 'none' ? '0' : 'unlimited'}:unlimited`]);
}

describe.runIf(process.platform === 'linux')('a full disk', () => {
  let folder: TemporaryDirectory;
  let home: string;
  let server: RunningCommand;
  let serverPid: number;
  let enginePid: number;
  let service: ServiceClient;
  let training: TrainingClient;

  beforeEach(async () => {
    folder = await temporaryDirectory();
    home = join(folder.path, 'home');
    await makeTinyModel(join(home, 'models', 'tiny'));
    server = startCommand(['serve', '--port', '0', '--json', '--log-level', 'error'], { home });
    const { url } = JSON.parse(await server.output(/\n/)) as { url: string };
    service = new ServiceClient({ baseUrl: url });
    training = await service.createLoraTrainingClient({ baseModel: 'tiny', rank: 2, seed: 1 });
    serverPid = server.child.pid!;
    enginePid = Number(await readFile(`/proc/${serverPid}/task/${serverPid}/children`, 'utf8'));
  });

  afterEach(async () => {
    await service.close();
    server.interrupt();
    await server.end;
    await folder[Symbol.asyncDispose]();
  });

  /** A pass and a step, which show that the session is at work and how far it came. */
  async function stepOn(): Promise<number | undefined> {
    const pass = training.forwardBackward([datum], 'cross_entropy');
    const step = training.optimStep({ learningRate: 1e-3 });
    expect((await pass).outputs).toHaveLength(1);
    return (await step).metrics['optim/step'];
  }

  test('refuses what is submitted, at once, and the next call goes through once there is room', async () => {
    const before = (await training.forward([datum], 'cross_entropy')).outputs[0]!.loss;
    setRoom(serverPid, 'none');
    expectRefusal(await failureOf(() => training.forward([datum], 'cross_entropy')), noRoom);
    expectRefusal(await failureOf(() => training.createSamplingClient().sample([5], { maxTokens: 1 })), noRoom);
    setRoom(serverPid, 'enough');
    expect((await training.forward([datum], 'cross_entropy')).outputs[0]!.loss).toBe(before);
    expect(await stepOn()).toBe(1);
  });

  test('fails a save without a version or a file left of it, and the save can be repeated', async () => {
    expect(await stepOn()).toBe(1);
    const trained = (await training.forward([datum], 'cross_entropy')).outputs[0]!.loss;
    setRoom(enginePid, 'none');
    expectRefusal(await failureOf(() => training.saveState()), noRoom);
    expectRefusal(await failureOf(() => training.saveWeightsForSampler()), noRoom);
    setRoom(enginePid, 'enough');
    expect(await service.listModelPackages()).toEqual([]);
    expect(await readdir(join(home, 'data', 'temporary'))).toEqual([]);

    const { modelPackageArn } = await training.saveState();
    const resumed = await service.createTrainingClientFromStateWithOptimizer({ modelPackageArn });
    expect((await resumed.forward([datum], 'cross_entropy')).outputs[0]!.loss).toBe(trained);
    expect(await stepOn()).toBe(2);
  });

  test('loses a result that could not be logged together with what it did: the session is as before the call', async () => {
    expect(await stepOn()).toBe(1);
    const before = (await training.forward([datum], 'cross_entropy')).outputs[0]!.loss;
    process.kill(enginePid, 'SIGSTOP'); // so that the disk fills up while the step runs
    const step = training.optimStep({ learningRate: 1e-2 });
    await expect.poll(() => step.state, { timeout: 20_000 }).toBe('running');
    setRoom(serverPid, 'none');
    process.kill(enginePid, 'SIGCONT');
    await server.output(/an ending could not be stored/);
    setRoom(serverPid, 'enough');
    expectRefusal(await failureOf(() => step), noRoom);

    expect((await training.forward([datum], 'cross_entropy')).outputs[0]!.loss).toBe(before);
    expect(await stepOn()).toBe(2);
  });

  test('refuses a new session, and one can be made once there is room', async () => {
    setRoom(serverPid, 'none');
    const create = () => service.createLoraTrainingClient({ baseModel: 'tiny', rank: 2 });
    expectRefusal(await failureOf(create), noRoom);
    setRoom(serverPid, 'enough');
    expect((await (await create()).forward([datum], 'cross_entropy')).outputs).toHaveLength(1);
  });

  test('keeps a server from starting, which says why', async () => {
    const args = ['serve', '--port', '0', '--data', join(folder.path, 'other'), '--json'];
    const { code, events } = await runCommand(args, { home, under: ['prlimit', '--fsize=0'] });
    expect(code).toBe(1);
    expect(events).toMatchObject([{ type: 'error', error: { code: 'disk_full', details: { field: 'dataDir' } } }]);
  });

  test('keeps a lock from being taken, without leaving one that is nobody’s', async () => {
    const out = join(folder.path, 'preflight');
    const task = fileURLToPath(new URL('../recipes/arithmetic/task.ts', import.meta.url));
    const args = ['preflight', task, '--out', out, '--json'];
    const { events } = await runCommand(args, { home, under: ['prlimit', '--fsize=0'] });
    expect(events.at(-1)).toMatchObject({ type: 'error', error: { code: 'disk_full' } });
    expect(await readdir(out)).toEqual([]);
  });
});
