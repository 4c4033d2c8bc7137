/** Snapshots of busy sessions: when they are taken, what is made of them, and that none of their faults is a fault of the session. */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LoopwrightError } from '@loopwright/protocol';
import { FakeEngine } from '@loopwright/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../store/open-database.js';
import { pass, saveState, step } from '../testing/operations.js';
import { openTestServer, type TestServer, type TestServerOptions } from '../testing/test-server.js';

const open: TestServer[] = [];
async function opened(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await openTestServer({ maxRedoSeconds: 0, ...options });
  open.push(server);
  return server;
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function restarted(server: TestServer, options: TestServerOptions = {}): Promise<TestServer> {
  await server.close();
  const models = [{ id: 'fake-model', directory: server.modelDir }];
  return opened({ dataDir: server.dataDir, models, engine: new FakeEngine({ incarnation: 'second' }), ...options });
}

const operations = [pass(), step(), pass([9]), pass([8])];

/** Runs them; with `maxRedoSeconds: 0` a snapshot is begun after each, and `settle` has it written. */
async function trained(server: TestServer, { settle = true } = {}): Promise<TestServer> {
  await server.createSession('s');
  for (const [index, operation] of operations.entries()) {
    expect((await server.train('s', index + 1, operation)).status).toBe('Completed');
    if (settle) await settled(server, index + 1);
  }
  return server;
}

/** A server that takes no snapshots. */
async function undisturbed(): Promise<TestServer> {
  return trained(await opened({ maxRedoSeconds: null }), { settle: false });
}

/** Until the snapshot behind this many operations is noted, and the one that it makes superfluous is gone. */
async function settled(server: TestServer, count: number): Promise<void> {
  const database = openDatabase(join(server.dataDir, 'loopwright.db'));
  try {
    const until = performance.now() + 10_000; // another process may keep the disk
    while (performance.now() < until) {
      const rows = await database.selectFrom('snapshots').select('next_sequence_number').execute();
      const isNoted = rows.some((row) => row.next_sequence_number === count + 1);
      if (isNoted && (await snapshotFolders(server)).length === rows.length) return;
      await new Promise((done) => setImmediate(done));
    }
    throw new Error(`no snapshot behind operation ${count}`);
  } finally {
    await database.destroy();
  }
}

async function snapshotFolders({ dataDir }: TestServer): Promise<string[]> {
  const root = join(dataDir, 'snapshots');
  const sessions = await readdir(root).catch(() => []);
  const lists = await Promise.all(
    sessions.map(async (id) => (await readdir(join(root, id))).map((name) => join(root, id, name))),
  );
  return lists.flat();
}

const passesOf = ({ engine }: TestServer) =>
  engine.calls.filter((call) => /^(pass|optimStep|restore|loadState):/.test(call));

describe('snapshots', () => {
  it('make a session anew after a restart without running its operations again, pending gradient included', async () => {
    const calm = await undisturbed();
    const next = await restarted(await trained(await opened()));
    const results = await Promise.all([calm, next].map((server) => server.train('s', 5, step())));
    expect(results[1]).toEqual(results[0]);
    expect(next.engine.fingerprint('s')).toBe(calm.engine.fingerprint('s'));
    expect(passesOf(next)).toEqual(['restore:s', 'optimStep:s']);
  });

  it('are two at most, and go when the session ends', async () => {
    const server = await trained(await opened());
    await server.close();
    expect(await snapshotFolders(server)).toHaveLength(2);
    const next = await restarted(server);
    await next.control('StopTrainingSession', { TrainingSessionName: 's' });
    await next.status('s', 'Stopped');
    expect(await snapshotFolders(server)).toEqual([]);
  });

  it('that are damaged are skipped: the one before is used, then the whole log, to the same bits', async () => {
    const calm = await undisturbed();
    for (const damagedCount of [1, 2]) {
      const server = await trained(await opened());
      await server.close();
      const folders = await snapshotFolders(server);
      const byStep = await Promise.all(folders.map(async (folder) => ({ folder, next: await nextOf(folder) })));
      byStep.sort((a, b) => b.next - a.next);
      for (const { folder } of byStep.slice(0, damagedCount)) await rm(join(folder, 'session.json'));
      const next = await restarted(server);
      await next.train('s', 5, pass([1], 'forward'));
      expect(next.engine.fingerprint('s')).toBe(calm.engine.fingerprint('s'));
      const replayed = passesOf(next).filter((call) => call === 'pass:s:forward-backward').length;
      expect(replayed).toBe(damagedCount === 1 ? 1 : 3);
    }
  });

  it('that were all deleted are not missed: the log gives the same bits', async () => {
    const calm = await undisturbed();
    const server = await trained(await opened());
    await server.close();
    await rm(join(server.dataDir, 'snapshots'), { recursive: true });
    const next = await restarted(server);
    await next.train('s', 5, pass([1], 'forward'));
    expect(next.engine.fingerprint('s')).toBe(calm.engine.fingerprint('s'));
  });

  it('of another session in their place are not taken for its own', async () => {
    const calm = await undisturbed();
    const server = await trained(await opened());
    await server.close();
    const strange = { seed: 1, weights: 1, moment: 2, step: 3, gradient: 4, pendingPasses: 5 };
    const metadata = JSON.stringify({ session: 'another', nextSequenceNumber: 5 });
    for (const folder of await snapshotFolders(server))
      await writeFile(join(folder, 'session.json'), JSON.stringify({ ...strange, metadata }));
    const next = await restarted(server);
    await next.train('s', 5, pass([1], 'forward'));
    expect(next.engine.fingerprint('s')).toBe(calm.engine.fingerprint('s'));
  });

  it('that fail cost no operation, and leave nothing behind', async () => {
    const engine = new FakeEngine();
    for (const _ of operations)
      engine.failNext('snapshot', new LoopwrightError({ code: 'disk_full', message: 'full' }));
    const server = await trained(await opened({ engine }), { settle: false });
    await server.close();
    expect(await snapshotFolders(server)).toEqual([]);
    const next = await restarted(server);
    await next.train('s', 5, step());
    expect(passesOf(next)).toContain('pass:s:forward-backward');
  });

  it('serve an engine that dies alone as well', async () => {
    const calm = await undisturbed();
    const server = await trained(await opened());
    server.engine.crash();
    const results = await Promise.all([calm, server].map((each) => each.train('s', 5, step())));
    expect(results[1]).toEqual(results[0]);
    expect(server.engine.fingerprint('s')).toBe(calm.engine.fingerprint('s'));
    expect(passesOf(server).slice(-2)).toEqual(['restore:s', 'optimStep:s']);
  });

  it('give way to a saved state behind which less is to be done', async () => {
    const server = await opened({ maxRedoSeconds: null });
    await trained(server, { settle: false });
    await server.train('s', 5, step());
    await server.train('s', 6, saveState);
    const next = await restarted(server);
    await next.train('s', 7, step());
    expect(passesOf(next)).toEqual(['loadState:s', 'optimStep:s']);
  });

  it('are not taken while little would have to be done again', async () => {
    const server = await trained(await opened({ maxRedoSeconds: 3600 }), { settle: false });
    expect(server.engine.calls).not.toContain('snapshot:s');
  });

  it('want a number of seconds', async () => {
    await expect(opened({ maxRedoSeconds: -1 })).rejects.toMatchObject({ code: 'invalid_argument' });
  });
});

async function nextOf(folder: string): Promise<number> {
  const saved = JSON.parse(await readFile(join(folder, 'session.json'), 'utf8')) as { metadata: string }; // true: the fake engine wrote it
  return (JSON.parse(saved.metadata) as { nextSequenceNumber: number }).nextSequenceNumber; // true: SnapshotMetadata
}
