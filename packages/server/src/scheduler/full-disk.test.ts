/** A disk without room at the moment of an acceptance, a result or a save. */
import * as nodeFiles from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TrainingOperation } from '@loopwright/protocol';
import { afterEach, describe, expect, it } from 'vitest';
import { FileBlobStore } from '../blobs/file-blob-store.js';
import { pass, saveWeights } from '../testing/operations.js';
import { openTestServer, type TestServer, type TestServerOptions } from '../testing/test-server.js';

const open: TestServer[] = [];
async function opened(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await openTestServer(options);
  open.push(server);
  return server;
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

describe('a full disk', () => {
  const full = () => Promise.reject(Object.assign(new Error('no space'), { code: 'ENOSPC' }));

  function fragile(dataDir: string) {
    const state = { full: false };
    const files = {
      ...nodeFiles,
      open: ((...args: Parameters<typeof nodeFiles.open>) =>
        state.full ? full() : nodeFiles.open(...args)) as typeof nodeFiles.open, // true: same parameters
    };
    return { state, blobs: new FileBlobStore({ root: join(dataDir, 'blobs'), files }) };
  }

  /** Its inputs and its result are too large to lie in the database. */
  function largePass(): TrainingOperation {
    const one = pass(Array.from({ length: 100 }, (_, index) => index % 64));
    return 'data' in one ? { ...one, data: Array.from({ length: 120 }, () => one.data[0]!) } : one;
  }

  it('refuses a submission at once with disk_full; afterwards the same number goes through', async () => {
    const dataDir = await nodeFiles.mkdtemp(join(tmpdir(), 'loopwright-full-'));
    const { state, blobs } = fragile(dataDir);
    const server = await opened({ dataDir, blobs });
    await server.createSession('s');
    state.full = true;
    expect(await server.submit('s', 1, largePass())).toMatchObject({ status: 507, body: { code: 'disk_full' } });
    state.full = false;
    expect((await server.train('s', 1, largePass())).status).toBe('Completed');
  });

  it('that loses a result fails the operation and leaves the session as if it had not run', async () => {
    const dataDir = await nodeFiles.mkdtemp(join(tmpdir(), 'loopwright-full-'));
    const { state, blobs } = fragile(dataDir);
    const server = await opened({ dataDir, blobs });
    await server.createSession('s');
    const hold = server.engine.hold('pass');
    const id = String((await server.submit('s', 1, largePass())).body.operationId);
    await hold.entered;
    state.full = true;
    hold.release();
    expect(await server.result('s', id)).toMatchObject({
      status: 'Failed',
      loopwright: { error: { code: 'disk_full' } },
    });
    state.full = false;
    await server.train('s', 2, pass([1], 'forward'));
    expect(server.engine.fingerprint('s').split('/').slice(-2)).toEqual(['0', '0']);
    expect(await server.detail('s')).toMatchObject({ BillableTokenUsage: { TrainingTokenCount: 1 } });
  });

  it('during a save lists no version, and the save can be repeated', async () => {
    const dataDir = await nodeFiles.mkdtemp(join(tmpdir(), 'loopwright-full-'));
    const { state, blobs } = fragile(dataDir);
    const server = await opened({ dataDir, blobs });
    await server.createSession('s');
    const hold = server.engine.hold('saveWeights');
    const id = String((await server.submit('s', 1, saveWeights())).body.operationId);
    await hold.entered;
    state.full = true;
    hold.release();
    expect(await server.result('s', id)).toMatchObject({
      status: 'Failed',
      loopwright: { error: { code: 'disk_full' } },
    });
    state.full = false;
    expect((await server.control('ListModelPackages')).body.ModelPackageSummaryList).toEqual([]);
    expect(await nodeFiles.readdir(join(dataDir, 'temporary'))).toEqual([]);
    expect((await server.train('s', 2, saveWeights())).status).toBe('Completed');
  });
});
