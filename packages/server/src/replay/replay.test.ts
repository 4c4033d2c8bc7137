/** Replays of logs, on an engine without a model; `test/replay.test.ts` does the same with a real one. */
import { createHash } from 'node:crypto';
import { cp, readdir, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LoopwrightError } from '@loopwright/protocol';
import { FakeEngine, rejection } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../store/open-database.js';
import { pass, saveState, saveWeights, step } from '../testing/operations.js';
import { opened, record, replayed, replayOptions } from '../testing/recording.js';
import type { TestServer } from '../testing/test-server.js';
import { openRecordedData } from './recorded-data.js';
import { type ReplayEvent, replay } from './replay.js';

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

interface SmallPayload {
  readonly hash: string;
  readonly bytes: Uint8Array;
}

async function payloadOf(
  { dataDir }: TestServer,
  id: string,
  column: 'payload_blob' | 'result_blob',
): Promise<SmallPayload> {
  const database = openDatabase(join(dataDir, 'loopwright.db'));
  const { hash, bytes } = await database
    .selectFrom('operations')
    .innerJoin('small_payloads', `operations.${column}`, 'small_payloads.hash')
    .select(['hash', 'bytes'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  await database.destroy();
  return { hash, bytes: new Uint8Array(bytes) };
}

/** Changes one bit of what a payload holds. */
async function tamperPayload({ dataDir }: TestServer, { hash, bytes }: SmallPayload): Promise<void> {
  const database = openDatabase(join(dataDir, 'loopwright.db'));
  await database
    .updateTable('small_payloads')
    .set({ bytes: flipped(bytes) })
    .where('hash', '=', hash)
    .execute();
  await database.destroy();
}

/** Changes one bit of a file. */
async function tamper(path: string): Promise<void> {
  const bytes = flipped(await readFile(path));
  await unlink(path); // the version's own files may be links to it
  await writeFile(path, bytes);
}

function flipped(bytes: Uint8Array): Uint8Array {
  const at = bytes.length - 5;
  return bytes.map((byte, index) => (index === at ? byte ^ 1 : byte));
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
    await server.close(); // or files change while they are copied
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
    const reports = await replay(replayOptions(server));
    expect(reports).toMatchObject([
      { session: 'first', compared: 3, foreignVersions: 0, differences: [] },
      { session: 'second', compared: 3, foreignVersions: 1, differences: [] },
    ]);
    expect(await replay(replayOptions(server, { session: 'second' }))).toHaveLength(1);
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
    expect(await rejection(replay(replayOptions(server, { createEngine: async () => engine })))).toMatchObject({
      code: 'engine_failed',
    });
  });

  it('ends when it is cancelled', async () => {
    const { server } = await record();
    const controller = new AbortController();
    const onEvent = () => controller.abort(new LoopwrightError({ code: 'cancelled', message: 'enough' }));
    const error = await rejection(replay(replayOptions(server, { signal: controller.signal, onEvent })));
    expect(error).toMatchObject({ code: 'cancelled' });
  });
});

describe('what was changed from outside', () => {
  it('in the inputs of a step is reported there, and nothing behind it is claimed', async () => {
    const { server, operationIds } = await record();
    await tamperPayload(server, await payloadOf(server, operationIds.get(8)!, 'payload_blob'));
    const report = await replayed(server);
    expect(report.differences).toMatchObject([
      { place: '8', findings: [{ type: 'damaged', what: 'inputs' }, { type: 'not-run' }] },
    ]);
  });

  it('in a result is reported there, with what its hash says all the same', async () => {
    const { server, operationIds } = await record();
    await tamperPayload(server, await payloadOf(server, operationIds.get(7)!, 'result_blob'));
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
    const { hash, bytes } = await payloadOf(other.server, other.operationIds.get(8)!, 'payload_blob');
    const database = openDatabase(join(server.dataDir, 'loopwright.db'));
    await database.insertInto('small_payloads').values({ workspace_id: 'default', hash, bytes }).execute();
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
    const error = await rejection(replay(replayOptions(server)));
    expect(error).toMatchObject({
      code: 'data_dir_in_use',
      details: { got: expect.stringContaining(String(process.pid)) },
    });
    await server.close();
    expect(await replay(replayOptions(server))).toEqual([]);
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
    expect(await rejection(replay(replayOptions({ ...server, dataDir: empty })))).toMatchObject({
      code: 'invalid_argument',
      details: { field: 'data directory' },
    });
    expect(await rejection(replay(replayOptions(server, { session: 'nobody' })))).toMatchObject({
      code: 'unknown_session',
      details: { remedy: expect.stringContaining('s') },
    });
  });
});
