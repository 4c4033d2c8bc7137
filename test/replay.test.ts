/** `loopwright replay` and `loopwright diff` on logs of real training: what was recorded comes again, bit for bit, from an empty engine. */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { startServer } from '@loopwright/server';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import Database from 'libsql';
import { type DatumFor, ServiceClient } from 'loopwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand, startCommand } from './support/command.js';
import { makeTinyModel } from './support/tiny-model.js';

let folder: TemporaryDirectory;
let home: string;
let model: string;
/** Data directories: of an undisturbed run, of one whose server was killed, of one with another rate in its second step. */
const runs = { calm: '', shaken: '', faster: '' };

beforeAll(async () => {
  folder = await temporaryDirectory();
  home = join(folder.path, 'home');
  model = await makeTinyModel(join(folder.path, 'model'));
  [runs.calm, runs.faster, runs.shaken] = await Promise.all([
    recordCalm('calm', 1e-3),
    recordCalm('faster', 2e-3),
    recordShaken('shaken'),
  ]);
});

afterAll(() => folder[Symbol.asyncDispose]());

function datum(length: number, seed: number): DatumFor<'cross_entropy'> {
  const tokens = Array.from({ length: length + 1 }, (_, t) => 3 + ((t * 7 + seed * 13 + t * t) % 90));
  const targetTokens = tokens.slice(1);
  return { modelInput: tokens.slice(0, -1), lossFnInputs: { targetTokens, weights: targetTokens.map(() => 1) } };
}

interface Training {
  /** Of the second step. */
  readonly learningRate?: number;
  /** Runs half way, between two passes of one step. */
  readonly halfWay?: () => Promise<void>;
}

/** Accumulation over two passes, saves of both kinds, samples from three versions, and a load that goes back. Operations are numbered from 1. */
async function train(service: ServiceClient, { learningRate = 1e-3, halfWay }: Training): Promise<void> {
  const training = await service.createLoraTrainingClient({ baseModel: 'tiny', rank: 4, seed: 1, name: 'run' });
  const sample = async () => {
    const sampler = training.createSamplingClient();
    const prompts = [
      [5, 6, 7],
      [8, 9],
      [5, 6, 7, 8, 9, 10, 11],
    ];
    await Promise.all(
      prompts.map((prompt, seed) =>
        sampler.sample(prompt, { numSamples: 3, maxTokens: 12, seed, topkPromptLogprobs: 2 }),
      ),
    );
    await sampler.computeLogprobs([5, 6, 7, 8]);
  };
  await sample();
  await training.forwardBackward([datum(20, 1), datum(33, 2)], 'cross_entropy'); // 1
  await training.forwardBackward([datum(7, 3)], 'cross_entropy'); // 2
  await training.optimStep({ learningRate: 1e-3 }); // 3
  const { modelPackageArn } = await training.saveState({ description: String(learningRate) }); // 4
  await training.forwardBackward([datum(40, 4)], 'cross_entropy'); // 5
  await halfWay?.();
  await training.forwardBackward([datum(12, 5), datum(40, 6)], 'cross_entropy'); // 6
  await training.optimStep({ learningRate }); // 7
  await training.saveWeightsForSampler(); // 8
  await sample();
  await training.loadStateWithOptimizer(modelPackageArn); // 9
  await training.forwardBackward([datum(25, 7)], 'cross_entropy'); // 10
  await training.optimStep({ learningRate: 5e-4 }); // 11
  await training.saveState(); // 12
}

async function recordCalm(name: string, learningRate: number): Promise<string> {
  const dataDir = join(folder.path, name);
  await using server = await startServer({ dataDir, models: [{ id: 'tiny', directory: model }], threads: 2 });
  const service = new ServiceClient({ baseUrl: server.url });
  await train(service, { learningRate });
  await service.close();
  return dataDir;
}

/** The server's process is killed half way, and another goes on where it was. */
async function recordShaken(name: string): Promise<string> {
  const dataDir = join(folder.path, name);
  const start = async (port: string) => {
    const args = ['serve', '--data', dataDir, '--model', `tiny=${model}`, '--threads', '2', '--port', port, '--json'];
    const server = startCommand(args, { home });
    const { url } = JSON.parse(await server.output(/listening.*\n/)) as { url: string }; // true: its first event
    return { ...server, url };
  };
  let server = await start('0');
  const { url } = server;
  const service = new ServiceClient({ baseUrl: url });
  const halfWay = async () => {
    server.child.kill('SIGKILL');
    await server.end;
    server = await start(new URL(url).port);
  };
  await train(service, { halfWay });
  await service.close();
  server.interrupt();
  await server.end;
  return dataDir;
}

const replayArgs = (dataDir: string, ...more: string[]) => ['replay', dataDir, '--model', `tiny=${model}`, ...more];

describe('replay', () => {
  test('finds every result and all saved weights of real training again, from an empty engine', async () => {
    const { code, stdout, stderr } = await runCommand(replayArgs(runs.calm), { home });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^run: tiny, 2 threads, onnxruntime-node [\d.]+\n/);
    expect(stdout).toMatch(/The same, bit for bit: 20 operations, the weights of 3 saved versions and 3 steps\.\n$/);
  });

  test('does so for a run whose server was killed and started again, which has the bits of the undisturbed one', async () => {
    const [{ code, events }, diff] = await Promise.all([
      runCommand(replayArgs(runs.shaken, '--session', 'run', '--json'), { home }),
      runCommand(['diff', runs.calm, runs.shaken], { home }),
    ]);
    expect(events.at(-1)).toMatchObject({ type: 'replay-end', same: true, sessions: 1, compared: 20 });
    expect(code).toBe(0);
    expect(diff.stdout).toBe('First: run. Second: run.\nThe same, bit for bit: 20 operations.\n');
    expect(diff.code).toBe(0);
  });

  test('names the operation whose stored inputs were changed from outside, and exits with 1', async () => {
    const dataDir = join(folder.path, 'tampered');
    await cp(runs.calm, dataDir, { recursive: true });
    damageInputsOfSix(dataDir);
    const { code, events } = await runCommand(replayArgs(dataDir, '--json'), { home });
    expect(code).toBe(1);
    expect(events.filter(({ type }) => type === 'difference')).toMatchObject([
      {
        operation: { place: '6', type: 'forward-backward' },
        findings: [{ type: 'damaged', what: 'inputs' }, { type: 'not-run' }],
      },
    ]);
    expect(events.at(-1)).toMatchObject({ type: 'replay-end', same: false });
  });

  test('says plainly that another number of threads leaves the recorded plan', async () => {
    const { stdout } = await runCommand(replayArgs(runs.calm, '--threads', '1'), { home });
    expect(stdout).toContain('run: tiny, 1 thread, ');
    expect(stdout).toContain('This replay leaves the recorded plan (threads 2 recorded, 1 now)');
  });

  test('is kept for diff: two replays under one plan are the same, and one of another plan says where it parts', async () => {
    const kept = (name: string) => join(folder.path, `kept-${name}`);
    const keep = (name: string, ...more: string[]) =>
      runCommand(replayArgs(runs.calm, '--keep', kept(name), '--json', ...more), { home });
    const ends = await Promise.all([keep('one'), keep('other'), keep('single', '--threads', '1')]);
    expect(ends.map(({ code }) => code).slice(0, 2)).toEqual([0, 0]);
    expect(ends[0]!.events.at(-1)).toMatchObject({ type: 'replay-end', kept: kept('one') });
    const [same, asRecorded, parted] = await Promise.all([
      runCommand(['diff', kept('one'), kept('other')], { home }),
      runCommand(['diff', runs.calm, kept('one')], { home }),
      runCommand(['diff', kept('one'), kept('single')], { home }),
    ]);
    for (const { code, stdout } of [same, asRecorded]) {
      expect(stdout).toBe('First: run. Second: run.\nThe same, bit for bit: 20 operations.\n');
      expect(code).toBe(0);
    }
    expect(parted.stdout).toContain('threads 2 in the first, 1 in the second');
    expect((await keep('one')).events).toMatchObject([{ type: 'error', error: { code: 'invalid_argument' } }]);
  });

  test('refuses a data directory while a server works on it', async () => {
    await using _server = await startServer({ dataDir: join(folder.path, 'busy'), models: [] });
    const { code, stderr } = await runCommand(replayArgs(join(folder.path, 'busy')), { home });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^error data_dir_in_use: dataDir\n {2}expected {2}a data directory that no server works on\n/,
    );
  });
});

describe('diff', () => {
  test('names the one step whose learning rate is another, and the weights that came of it', async () => {
    const args = ['diff', runs.calm, runs.faster];
    const [{ code, stdout }, { events }] = await Promise.all([
      runCommand(args, { home }),
      runCommand([...args, '--json'], { home }),
    ]);
    expect(code).toBe(1);
    const lines = stdout.split('\n');
    expect(lines[1]).toBe('The first operation that differs is 7 (optim-step), after 10 that are the same:');
    expect(lines[2]).toMatch(
      /^ {2}inputs [0-9a-f]{16} in the first, [0-9a-f]{16} in the second: adam\.learningRate 0\.001 in the first, 0\.002 in the second \(off by 1\.0e-3\)$/,
    );
    expect(lines[3]).toMatch(/^ {2}result: /);
    expect(lines[4]).toBe('The first saved weights that differ are those of operation 8 (save-weights):');
    expect(lines[5]).toMatch(
      /^ {2}base_model\.model\.\S+\.lora_[AB]\.weight: \d+ of \d+ values, by \d\.\de-\d+ at most/,
    );
    expect(events).toMatchObject([{ type: 'diff', same: false, plan: [], first: { place: '7' } }]);
  });
});

/** Changes one bit of what operation 6 was given: the only one with a datum of 12 tokens. */
function damageInputsOfSix(dataDir: string): void {
  const database = new Database(join(dataDir, 'loopwright.db'));
  const rows = database.prepare('SELECT hash, bytes FROM small_payloads').all([]) as {
    readonly hash: string;
    readonly bytes: ArrayBuffer;
  }[]; // true: the columns asked for
  const six = rows.find(({ bytes }) => {
    const text = Buffer.from(bytes).toString('latin1');
    return text.includes('"kind":"operation"') && text.includes('"length":12}');
  });
  if (six === undefined) throw new Error('no such payload');
  const bytes = Buffer.from(six.bytes);
  bytes[bytes.length - 1] = bytes[bytes.length - 1]! ^ 1;
  database.prepare('UPDATE small_payloads SET bytes = ? WHERE hash = ?').run([bytes, six.hash]);
  database.close();
}
