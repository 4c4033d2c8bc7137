/** Saved versions, over the HTTP routes. */
import { existsSync, mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { FileBlobStore } from '../blobs/file-blob-store.js';
import { ManualClock } from '../testing/manual-clock.js';
import { pass, saveState, saveWeights, step } from '../testing/operations.js';
import { openTestServer, type ResultBody, type TestServer, type TestServerOptions } from '../testing/test-server.js';

const open: TestServer[] = [];
async function started(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await openTestServer(options);
  open.push(server);
  await server.createSession('s');
  return server;
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

const arnIn = (result: ResultBody, member: string) => String(result.operationResult?.[member]?.modelPackageArn);
const list = async (server: TestServer, body = {}) =>
  (await server.control('ListModelPackages', body)).body.ModelPackageSummaryList as {
    ModelPackageArn: string;
    ModelPackageVersion: number;
  }[];
const load = (version: string, loadOptimizer: boolean) => ({ type: 'load-state', version, loadOptimizer }) as const;

describe('saved versions', () => {
  it('are numbered, listed newest first by page, and described by kind', async () => {
    const server = await started();
    await server.train('s', 1, saveWeights());
    const state = arnIn(await server.train('s', 2, { type: 'save-state', description: 'half way' }), 'saveState');
    await server.train('s', 3, { type: 'save-weights', merge: true, description: '', ttlSeconds: null });
    expect((await list(server)).map((version) => version.ModelPackageVersion)).toEqual([3, 2, 1]);
    const first = (await server.control('ListModelPackages', { MaxResults: 2, SortOrder: 'Ascending' })).body;
    expect(first.NextToken).toBeDefined();
    const rest = await list(server, { MaxResults: 2, SortOrder: 'Ascending', NextToken: first.NextToken });
    expect(rest.map((version) => version.ModelPackageVersion)).toEqual([3]);
    expect((await server.control('DescribeModelPackage', { ModelPackageName: state })).body).toMatchObject({
      ModelPackageVersion: 2,
      ModelPackageDescription: 'half way',
      InferenceSpecification: { Containers: [{ IsCheckpoint: true, BaseModel: { HubContentName: 'fake-model' } }] },
    });
  });

  it('go into the group that the session names', async () => {
    const server = await started();
    const ModelPackageGroupArn = 'arn:aws:sagemaker:self-hosted-1:000000000000:model-package-group/mine';
    await server.createSession('t', { ModelPackageGroupArn });
    const arn = arnIn(await server.train('t', 1, saveWeights()), 'saveWeights');
    expect(arn).toBe('arn:aws:sagemaker:self-hosted-1:000000000000:model-package/mine/1');
    expect(await list(server, { ModelPackageGroupName: 'mine' })).toHaveLength(1);
    expect((await server.control('DescribeModelPackageGroup', { ModelPackageGroupName: 'mine' })).body).toMatchObject({
      ModelPackageGroupArn,
    });
    expect((await server.control('DescribeModelPackageGroup', { ModelPackageGroupName: 'none' })).body).toMatchObject({
      __type: 'ResourceNotFound',
    });
  });

  it('resume: with the optimizer as if undisturbed, without it differently', async () => {
    const server = await started();
    await server.train('s', 1, pass());
    await server.train('s', 2, step());
    await server.train('s', 3, saveState);
    const version = (await list(server))[0]!.ModelPackageArn.split('model-package/')[1]!;
    const prints: string[] = [];
    for (const [name, loadOptimizer] of [
      ['a', true],
      ['c', false],
    ] as const) {
      await server.createSession(name);
      expect((await server.train(name, 1, load(version, loadOptimizer))).status).toBe('Completed');
      await server.train(name, 2, pass([9]));
      await server.train(name, 3, step());
      prints.push(server.engine.fingerprint(name));
    }
    await server.train('s', 4, pass([9]));
    await server.train('s', 5, step());
    expect(prints[0]).toBe(server.engine.fingerprint('s'));
    expect(prints[1]).not.toBe(prints[0]);
  });

  it('that do not fit are refused at once, naming what differs', async () => {
    const server = await started();
    await server.train('s', 1, saveState);
    await server.train('s', 2, saveWeights());
    await server.createSession('t', { LoraConfig: { Rank: 4, Alpha: 16 } });
    const group = 'sagemaker-default';
    expect(await server.submit('t', 1, load(`${group}/1`, true))).toMatchObject({
      status: 400,
      body: { code: 'checkpoint_mismatch', details: { got: expect.stringContaining('rank 8') } },
    });
    expect(await server.submit('s', 3, load(`${group}/2`, true))).toMatchObject({
      body: { code: 'checkpoint_mismatch' },
    });
    expect(await server.submit('s', 4, load(`${group}/99`, true))).toMatchObject({
      status: 404,
      body: { code: 'unknown_version' },
    });
    expect((await server.train('s', 5, load(`${group}/1`, true))).status).toBe('Completed');
  });

  it('are gone from every list once deleted, and refused by name', async () => {
    const server = await started();
    const ModelPackageName = arnIn(await server.train('s', 1, saveWeights()), 'saveWeights');
    expect((await server.control('DeleteModelPackage', { ModelPackageName })).status).toBe(200);
    expect(await list(server)).toEqual([]);
    expect((await server.control('DeleteModelPackage', { ModelPackageName })).body).toMatchObject({
      __type: 'ResourceNotFound',
      message: expect.stringContaining('does not exist'),
    });
    await expect(server.sample('s', { modelPackageArn: ModelPackageName })).rejects.toThrow('unknown_version');
  });

  it('never reuse a number', async () => {
    const server = await started();
    const ModelPackageName = arnIn(await server.train('s', 1, saveWeights()), 'saveWeights');
    await server.control('DeleteModelPackage', { ModelPackageName });
    await server.sweep();
    await server.train('s', 2, saveWeights());
    expect((await list(server)).map((version) => version.ModelPackageVersion)).toEqual([2]);
  });
});

describe('ephemeral versions', () => {
  const blobCount = (server: TestServer) =>
    readdirSync(join(server.dataDir, 'blobs'), { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    ).length;

  it('expire, and lose their files when nothing reads them; shared files stay', async () => {
    const clock = new ManualClock();
    const dataDir = mkdtempSync(join(tmpdir(), 'loopwright-ttl-'));
    const server = await started({
      clock,
      dataDir,
      blobs: new FileBlobStore({ root: join(dataDir, 'blobs'), graceMs: 0 }),
    });
    await server.train('s', 1, saveWeights(60));
    await server.train('s', 2, saveWeights(null)); // the same weights, so the same blob
    await server.train('s', 3, pass());
    await server.train('s', 4, step());
    const arn = arnIn(await server.train('s', 5, saveWeights(60)), 'saveWeights');
    const stored = blobCount(server);
    const hold = server.engine.hold('sample');
    const reading = await server.sample('s', { modelPackageArn: arn });
    await hold.entered;
    clock.advance(60_000);
    expect((await list(server)).map((version) => version.ModelPackageVersion)).toEqual([2]);
    await server.sweep();
    const directory = join(server.dataDir, 'versions', 'default', 'sagemaker-default');
    expect(existsSync(join(directory, '1'))).toBe(false);
    expect(existsSync(join(directory, '3'))).toBe(true);
    expect(blobCount(server)).toBe(stored);
    hold.release();
    expect((await server.result('s', reading, 'sampling-operations')).status).toBe('Completed');
    await server.sweep();
    expect(existsSync(join(directory, '3'))).toBe(false);
    expect(blobCount(server)).toBe(stored - 1);
    await expect(server.sample('s', { modelPackageArn: arn })).rejects.toThrow('does not exist any more');
  });

  it('are what SageMaker clients save where the operator says so, but not what says when it ends, states, or what our client keeps', async () => {
    const clock = new ManualClock();
    const server = await started({ clock, saveTtlSeconds: 3600 });
    const save = (sequenceNumber: number, operationConfig: object, headers: Readonly<Record<string, string>> = {}) =>
      server.request('POST', '/v1/training-sessions/s/operations', { sequenceNumber, operationConfig }, headers);
    const trainer = { 'x-loopwright-trainer': 'ours' };
    const ids = [
      await save(1, { saveWeights: {} }),
      await save(2, { saveWeights: { ttlSeconds: 60 } }),
      await save(3, { saveState: {} }),
      await save(4, { saveWeights: {} }, trainer),
    ].map(({ body }) => String(body.operationId));
    for (const id of ids) expect((await server.result('s', id)).status).toBe('Completed');
    const { versions } = (await server.request('GET', '/v1/registry/versions')).body as {
      versions: { number: number; expiresAtMs: number | null }[];
    };
    const lives = versions.map(({ number, expiresAtMs }) => [number, expiresAtMs && expiresAtMs - clock.now()]);
    expect(lives).toEqual([
      [4, null],
      [3, null],
      [2, 60_000],
      [1, 3_600_000],
    ]);
  });
});
