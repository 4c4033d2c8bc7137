/** Replays and comparisons of logs, on an engine without a model; `test/replay.test.ts` does the same with a real one. */
import { createHash } from 'node:crypto';
import { cp, readdir, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LoopwrightError } from '@loopwright/protocol';
import { FakeEngine, rejection } from '@loopwright/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../store/open-database.js';
import { pass, saveState, saveWeights, step } from '../testing/operations.js';
import { openTestServer, type TestServer, type TestServerOptions } from '../testing/test-server.js';
import { compareRuns } from './compare-runs.js';
import { openRecordedData } from './recorded-data.js';
import { type ReplayEvent, type ReplayOptions, type ReplayReport, replay } from './replay.js';

const open: TestServer[] = [];
async function opened(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await openTestServer(options);
  open.push(server);
  return server;
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

interface Recording {
  readonly server: TestServer;
  readonly operationIds: ReadonlyMap<number, string>;
}

interface RecordOptions {
  readonly options?: TestServerOptions;
  readonly session?: string;
  readonly learningRate?: number;
  /** Submitted before the rest is, in this order of seeds. */
  readonly seeds?: readonly number[];
}

/** Passes added up, steps, saves of both kinds, a load, samples of three kinds of weights, a failed pass and the step behind it. */
async function record({
  options,
  session = 's',
  learningRate = 2e-4,
  seeds = [1, 2],
}: RecordOptions = {}): Promise<Recording> {
  const server = await opened(options);
  await server.createSession(session);
  const sample = async (seed: number) => {
    const id = await server.sample(session, { samplingParams: { maxTokens: 4, seed } });
    return server.result(session, id, 'sampling-operations');
  };
  await sample(9);
  const ids = new Map<number, string>();
  const train = async (number: number, operation: Parameters<TestServer['submit']>[2]) => {
    const { body } = await server.submit(session, number, operation);
    ids.set(number, String(body.operationId));
    return server.result(session, String(body.operationId));
  };
  await train(1, pass());
  await train(2, pass([9, 8]));
  await train(3, step());
  const saved = await train(4, saveState);
  const arn = String(saved.operationResult?.saveState?.modelPackageArn);
  for (const seed of seeds) await sample(seed);
  server.engine.failNext('pass', new LoopwrightError({ code: 'cancelled', message: 'enough' }));
  await train(5, pass([1]));
  await train(6, step());
  await train(7, pass([3]));
  await train(8, step(learningRate));
  await train(9, saveWeights());
  await sample(3);
  const version = decodeURIComponent(arn.slice(arn.indexOf('model-package/') + 'model-package/'.length));
  await train(10, { type: 'load-state', version, loadOptimizer: true });
  await train(11, pass([4, 4], 'forward'));
  await train(12, pass([4, 4]));
  await train(13, step());
  await train(14, saveState);
  await server.close();
  return { server, operationIds: ids };
}

function options({ dataDir, modelDir }: TestServer, more: Partial<ReplayOptions> = {}): ReplayOptions {
  return {
    dataDir,
    models: [{ id: 'fake-model', directory: modelDir }],
    cacheDirectory: join(dataDir, 'unused'),
    createEngine: async () => new FakeEngine({ incarnation: 'replay' }),
    ...more,
  };
}

async function replayed(server: TestServer, more: Partial<ReplayOptions> = {}): Promise<ReplayReport> {
  const [report, ...others] = await replay(options(server, more));
  expect(others).toEqual([]);
  return report!;
}

/** Every file with its bytes and times. */
async function contentOf(directory: string): Promise<Record<string, string>> {
  const content: Record<string, string> = {};
  for (const entry of await readdir(directory, { recursive: true })) {
    const path = join(directory, entry);
    const { mtimeMs, ctimeMs, nlink } = await stat(path);
    const isFile = (await stat(path)).isFile();
    const hash = isFile
      ? createHash('sha256')
          .update(await readFile(path))
          .digest('hex')
      : 'folder';
    content[entry] = [hash, mtimeMs, ctimeMs, nlink].join(' ');
  }
  return content;
}

async function blobOf(server: TestServer, id: string, column: 'payload_blob' | 'result_blob'): Promise<string> {
  const database = openDatabase(join(server.dataDir, 'loopwright.db'));
  const row = await database.selectFrom('operations').select(column).where('id', '=', id).executeTakeFirstOrThrow();
  await database.destroy();
  const hash = String(row[column as keyof typeof row]);
  return join(server.dataDir, 'blobs', 'default', hash.slice(0, 2), hash);
}

/** Changes one byte in the middle of a file. */
async function tamper(path: string): Promise<void> {
  const bytes = await readFile(path);
  const at = bytes.length - 5;
  bytes[at] = bytes[at]! ^ 1;
  await unlink(path); // the version's own files may be links to it
  await writeFile(path, bytes);
}

describe('a replay', () => {
  it('of an undisturbed log finds every result and every saved version again', async () => {
    const { server } = await record();
    const events: ReplayEvent[] = [];
    const report = await replayed(server, { onEvent: (event) => events.push(event) });
    expect(report.differences).toEqual([]);
    // 14 training operations, of which the failed pass and the step behind it are not compared, and 4 samples.
    expect(report).toMatchObject({
      session: 's',
      compared: 16,
      leftOut: 2,
      fingerprints: 3,
      versions: 3,
      versionsGone: 0,
    });
    expect(events[0]).toMatchObject({ type: 'session-start', session: 's', baseModel: 'fake-model', planChanges: [] });
    const places = events.flatMap((event) => (event.type === 'operation-end' ? [event.operation.place] : []));
    expect(places).toEqual('0.1 1 2 3 4 4.1 4.2 5 6 7 8 9 9.1 10 11 12 13 14'.split(' '));
    expect(events.at(-1)).toMatchObject({ type: 'session-end', report: { session: 's' } });
  });

  it('writes nothing to the data directory, and leaves nothing behind', async () => {
    const { server } = await record();
    const dataDir = `${server.dataDir}-copy`; // nobody has it open
    await cp(server.dataDir, dataDir, { recursive: true });
    const before = await contentOf(dataDir);
    expect(await replayed({ ...server, dataDir })).toMatchObject({ compared: 16, differences: [] });
    expect(await contentOf(dataDir)).toEqual(before);
    await using data = await openRecordedData(dataDir);
    const { temporaryDirectory } = data;
    await data[Symbol.asyncDispose]();
    await expect(stat(temporaryDirectory)).rejects.toThrow();
  });

  it('reads what a server that was killed had not yet moved into its database', async () => {
    const server = await opened();
    await server.createSession('s');
    await server.train('s', 1, pass());
    await server.train('s', 2, step());
    // The files as they lie there while the server has them open, under another name.
    const copy = `${server.dataDir}-copy`;
    await cp(server.dataDir, copy, { recursive: true, filter: (path) => !path.includes('lock') });
    expect((await stat(join(copy, 'loopwright.db-wal'))).size).toBeGreaterThan(0);
    expect(await replayed({ ...server, dataDir: copy })).toMatchObject({ compared: 2, differences: [] });
  });

  it('takes a state of another session as it was recorded', async () => {
    const server = await opened();
    await server.createSession('first');
    await server.train('first', 1, pass());
    await server.train('first', 2, step());
    const saved = await server.train('first', 3, saveState);
    await server.createSession('second');
    const arn = String(saved.operationResult?.saveState?.modelPackageArn);
    const version = decodeURIComponent(arn.slice(arn.indexOf('model-package/') + 'model-package/'.length));
    await server.train('second', 1, { type: 'load-state', version, loadOptimizer: true });
    await server.train('second', 2, pass());
    await server.train('second', 3, step());
    await server.close();
    const reports = await replay(options(server));
    expect(reports).toMatchObject([
      { session: 'first', compared: 3, foreignVersions: 0, differences: [] },
      { session: 'second', compared: 3, foreignVersions: 1, differences: [] },
    ]);
    expect(await replay(options(server, { session: 'second' }))).toHaveLength(1);
  });

  it('says at which operation an engine that computes otherwise does so, in which field and by how much', async () => {
    const { server } = await record();
    class Drifting extends FakeEngine {
      override async pass(...args: Parameters<FakeEngine['pass']>) {
        const result = await super.pass(...args);
        const [operation] = [args[1]];
        if (operation.data[0]!.modelInput[0] !== 3) return result;
        const logprobs = result.outputs[0]!.logprobs.map((value) => value + 0.25);
        return { ...result, outputs: [{ ...result.outputs[0]!, logprobs }] };
      }
    }
    const report = await replayed(server, { createEngine: async () => new Drifting() });
    expect(report.differences).toMatchObject([
      {
        place: '7',
        type: 'forward-backward',
        findings: [{ type: 'result', difference: { first: { path: 'outputs[0].logprobs[0]', size: 0.25 }, count: 1 } }],
      },
    ]);
    expect(report.largest).toEqual({ 'forward-backward: outputs[].logprobs': 0.25 });
  });

  it('tells what expired from what differs', async () => {
    const server = await opened();
    await server.createSession('s');
    await server.train('s', 1, saveWeights(1));
    await server.close();
    const database = openDatabase(join(server.dataDir, 'loopwright.db'));
    await database.deleteFrom('version_files').execute();
    await database.destroy();
    expect(await replayed(server)).toMatchObject({ versions: 0, versionsGone: 1, differences: [] });
  });

  it('fails with what ended the engine, not with differences', async () => {
    const { server } = await record();
    const engine = new FakeEngine();
    engine.failNext('optimStep', new LoopwrightError({ code: 'engine_failed', message: 'killed' }));
    expect(await rejection(replay(options(server, { createEngine: async () => engine })))).toMatchObject({
      code: 'engine_failed',
    });
  });

  it('ends when it is cancelled', async () => {
    const { server } = await record();
    const controller = new AbortController();
    const onEvent = () => controller.abort(new LoopwrightError({ code: 'cancelled', message: 'enough' }));
    const error = await rejection(replay(options(server, { signal: controller.signal, onEvent })));
    expect(error).toMatchObject({ code: 'cancelled' });
  });
});

describe('what was changed from outside', () => {
  it('in the inputs of a step is reported there, and nothing behind it is claimed', async () => {
    const { server, operationIds } = await record();
    await tamper(await blobOf(server, operationIds.get(8)!, 'payload_blob'));
    const report = await replayed(server);
    expect(report.differences).toMatchObject([
      { place: '8', findings: [{ type: 'damaged', what: 'inputs' }, { type: 'not-run' }] },
    ]);
  });

  it('in a result is reported there, with what its hash says all the same', async () => {
    const { server, operationIds } = await record();
    await tamper(await blobOf(server, operationIds.get(7)!, 'result_blob'));
    expect((await replayed(server)).differences).toMatchObject(
      [
        { place: '7', findings: [{ type: 'damaged', what: 'result', message: /what came now has the recorded hash/ }] },
      ].map((each) => ({
        ...each,
        findings: each.findings.map((f) => ({ ...f, message: expect.stringMatching(f.message) })),
      })),
    );
  });

  it('in the files of a saved version is reported at its save', async () => {
    const { server, operationIds } = await record();
    const database = openDatabase(join(server.dataDir, 'loopwright.db'));
    const { blob } = await database
      .selectFrom('version_files')
      .innerJoin('versions', 'versions.id', 'version_files.version_id')
      .select('blob')
      .where('versions.operation_id', '=', operationIds.get(9)!)
      .executeTakeFirstOrThrow();
    await database.destroy();
    await tamper(join(server.dataDir, 'blobs', 'default', blob.slice(0, 2), blob));
    expect((await replayed(server)).differences).toMatchObject([
      { place: '9', findings: [{ type: 'damaged', what: 'weights' }] },
    ]);
  });

  it('in the log, with everything in its place, is reported where its effect shows', async () => {
    const [{ server, operationIds }, other] = [await record(), await record({ learningRate: 3e-4 })];
    // The step of another run, under the hash that it has: no blob is damaged.
    const payload = await blobOf(other.server, other.operationIds.get(8)!, 'payload_blob');
    const hash = payload.slice(-64);
    const path = join(server.dataDir, 'blobs', 'default', hash.slice(0, 2), hash);
    await cp(payload, path, { recursive: true });
    const database = openDatabase(join(server.dataDir, 'loopwright.db'));
    await database
      .updateTable('operations')
      .set({ payload_blob: hash })
      .where('id', '=', operationIds.get(8)!)
      .execute();
    await database.destroy();
    const { differences } = await replayed(server);
    expect(differences[0]).toMatchObject({
      place: '8',
      findings: [
        { type: 'result', difference: { first: { path: 'metrics.optim/lr', values: [2e-4, 3e-4] }, count: 2 } },
      ],
    });
    // Saved with those weights, and sampled from; the load behind it starts from a state before it.
    expect(differences.map(({ place }) => place)).toEqual(['8', '9', '9.1']);
  });
});

describe('a data directory', () => {
  it('that a server works on is refused with a sentence that names it', async () => {
    const server = await opened();
    const error = await rejection(replay(options(server)));
    expect(error).toMatchObject({
      code: 'data_dir_in_use',
      details: { got: expect.stringContaining(String(process.pid)) },
    });
    await server.close();
    expect(await replay(options(server))).toEqual([]);
  });

  it('keeps servers out only while its database is copied', async () => {
    const { server } = await record();
    await using _data = await openRecordedData(server.dataDir);
    const next = await opened({ dataDir: server.dataDir, models: [{ id: 'fake-model', directory: server.modelDir }] });
    expect((await next.train('s', 15, pass())).status).toBe('Completed');
  });

  it('without a log, and a session that is not in it, are refused by name', async () => {
    const { server } = await record();
    const empty = join(server.dataDir, 'versions');
    expect(await rejection(replay(options({ ...server, dataDir: empty })))).toMatchObject({
      code: 'invalid_argument',
      details: { field: 'data directory' },
    });
    expect(await rejection(replay(options(server, { session: 'nobody' })))).toMatchObject({
      code: 'unknown_session',
      details: { remedy: expect.stringContaining('s') },
    });
  });
});

describe('a comparison of two runs', () => {
  it('of the same operations finds nothing, whatever sessions, versions and descriptions are called and samples came in', async () => {
    const [a, b] = [await record(), await record({ session: 'another', seeds: [2, 1] })];
    expect(await compareRuns(a.server, b.server)).toEqual({
      sessions: ['s', 'another'],
      same: true,
      plan: [],
      creation: [],
      compared: 18,
    });
  });

  it('that differ in one learning rate names that step, both rates, and the weights that came of it', async () => {
    const [a, b] = [await record(), await record({ learningRate: 3e-4 })];
    const comparison = await compareRuns(a.server, b.server);
    expect(comparison).toMatchObject({
      same: false,
      first: {
        place: '8',
        type: 'optim-step',
        operationId: a.operationIds.get(8),
        otherId: b.operationIds.get(8),
        findings: [
          { type: 'inputs', difference: { first: { path: 'adam.learningRate', values: [2e-4, 3e-4] }, count: 1 } },
          { type: 'result', difference: { first: { path: 'metrics.optim/lr' } } },
        ],
      },
      weights: { operation: { place: '9' }, difference: { files: ['adapter.json'] } },
    });
    const finding = comparison.first!.findings[0]!;
    if (finding.type !== 'inputs') throw new Error('expected inputs first');
    expect(finding.difference!.first.size).toBeCloseTo(1e-4, 12);
    expect(finding.values[0]).not.toBe(finding.values[1]);
  });

  it('takes a plan without a device for one of the processor, and runs on the recorded device unless told otherwise', async () => {
    const { server } = await record();
    const dataDir = `${server.dataDir}-older`;
    await cp(server.dataDir, dataDir, { recursive: true });
    const database = openDatabase(join(dataDir, 'loopwright.db'));
    const { plan } = await database.selectFrom('sessions').select('plan').executeTakeFirstOrThrow();
    const { device, ...older } = JSON.parse(plan!) as Record<string, unknown>; // true: it is an object
    expect(device).toBe('cpu');
    const set = (to: object) =>
      database
        .updateTable('sessions')
        .set({ plan: JSON.stringify(to) })
        .execute();
    await set(older);
    expect(await compareRuns({ dataDir: server.dataDir }, { dataDir })).toMatchObject({ same: true, plan: [] });
    expect((await replayed({ ...server, dataDir })).plan).toMatchObject({ plan: { device: 'cpu' }, planChanges: [] });
    await set({ ...older, device: 'cuda', deterministic: false });
    await database.destroy();
    const made: unknown[] = [];
    const createEngine: NonNullable<ReplayOptions['createEngine']> = async (_card, plan) => {
      made.push(plan);
      return new FakeEngine(plan);
    };
    expect((await replayed({ ...server, dataDir }, { createEngine })).plan).toMatchObject({ planChanges: [] });
    expect((await replayed({ ...server, dataDir }, { createEngine, device: 'cpu' })).plan?.planChanges).toEqual([
      { path: 'device', values: ['cuda', 'cpu'] },
      { path: 'deterministic', values: [false, true] },
    ]);
    expect(made).toEqual([
      { threads: 1, device: 'cuda' },
      { threads: 1, device: 'cpu' },
    ]);
  });

  it('tells a plan that differs, and another seed of the adapter', async () => {
    const [a, b] = [await opened(), await opened()];
    await a.createSession('s');
    await b.createSession('s', { Loopwright: { Seed: 2 } });
    for (const server of [a, b]) {
      await server.train('s', 1, pass());
      await server.close();
    }
    const database = openDatabase(join(b.dataDir, 'loopwright.db'));
    const { plan } = await database.selectFrom('sessions').select('plan').executeTakeFirstOrThrow();
    const changed = JSON.stringify({ ...JSON.parse(plan!), threads: 7 });
    await database.updateTable('sessions').set({ plan: changed }).execute();
    await database.destroy();
    expect(await compareRuns(a, b)).toMatchObject({
      same: false,
      plan: [{ path: 'threads', values: [1, 7] }],
      creation: [{ path: 'seed', values: [1, 2] }],
      first: { place: '1', findings: [{ type: 'result' }] },
    });
  });

  it('names an operation that one of them lacks, and one of another type', async () => {
    const servers = [await opened(), await opened(), await opened()];
    const lists = [[pass(), step()], [pass()], [pass(), pass()]];
    for (const [index, server] of servers.entries()) {
      await server.createSession('s');
      for (const [i, operation] of lists[index]!.entries()) await server.train('s', i + 1, operation);
      await server.close();
    }
    const [a, b, c] = servers as [TestServer, TestServer, TestServer];
    expect((await compareRuns(a, b)).first).toMatchObject({
      place: '2',
      otherId: null,
      findings: [{ type: 'missing', values: ['optim-step', null] }],
    });
    expect((await compareRuns(b, a)).first).toMatchObject({ findings: [{ values: [null, 'optim-step'] }] });
    expect((await compareRuns(a, c)).first).toMatchObject({
      findings: [{ values: ['optim-step', 'forward-backward'] }],
    });
  });

  it('tells that prompts differ without telling what they say', async () => {
    const servers = [await opened(), await opened()];
    for (const [index, server] of servers.entries()) {
      await server.createSession('s');
      const prompt = { chunks: [{ type: 'encoded_text', tokens: [1, 2, 40 + index] }] };
      await server.result(
        's',
        await server.sample('s', { prompt, samplingParams: { maxTokens: 2, seed: 1 } }),
        'sampling-operations',
      );
      await server.close();
    }
    const { first } = await compareRuns(servers[0]!, servers[1]!);
    expect(first).toMatchObject({
      place: '0.1',
      findings: [{ type: 'inputs', difference: { first: { path: 'prompt[2]' } } }],
    });
    expect(JSON.stringify(first)).not.toMatch(/\b4[01]\b/);
  });

  it('asks which session is meant where there are several', async () => {
    const server = await opened();
    await server.createSession('one');
    await server.createSession('two');
    await server.close();
    const error = await rejection(compareRuns(server, server));
    expect(error).toMatchObject({ code: 'invalid_argument', details: { remedy: expect.stringContaining('one, two') } });
    const [a, b] = [
      { ...server, session: 'one' },
      { ...server, session: 'two' },
    ];
    expect(await compareRuns(a, b)).toMatchObject({ same: true, sessions: ['one', 'two'] });
  });
});
