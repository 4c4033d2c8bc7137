/** What only a server with a socket shows. */
import { mkdtempSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FakeEngine } from '@loopwright/testkit';
import { hubContentArn, placeholders } from '@loopwright/wires/sagemaker';
import { describe, expect, it } from 'vitest';
import { startServer } from './main.js';
import { makeModelDirectory } from './testing/test-server.js';

const base = () => ({
  dataDir: mkdtempSync(join(tmpdir(), 'loopwright-main-')),
  models: [{ id: 'fake-model', directory: makeModelDirectory() }],
  engineFactory: async () => new FakeEngine(),
});

describe('startServer', () => {
  it('serves a session over a port, and answers what is held when it closes', async () => {
    const engine = new FakeEngine();
    const server = await startServer({ ...base(), engineFactory: async () => engine });
    const post = async (path: string, body: unknown, target?: string) => {
      const headers = {
        'content-type': 'application/json',
        ...(target === undefined ? {} : { 'x-amz-target': `SageMaker.${target}` }),
      };
      const answer = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) });
      return (await answer.json()) as Record<string, unknown>; // true: every answer is an object
    };
    await post(
      '/',
      {
        TrainingSessionName: 's',
        ...placeholders,
        ModelConfig: { BaseModelArn: hubContentArn({ name: 'fake-model', version: '1.0.0' }) },
      },
      'CreateTrainingSession',
    );
    let status = '';
    while (status !== 'Running') {
      const { TrainingSessionDetail } = await post('/', { TrainingSessionName: 's' }, 'DescribeTrainingSession');
      status = (TrainingSessionDetail as { TrainingSessionStatus: string }).TrainingSessionStatus;
    }
    const hold = engine.hold('saveState');
    const { operationId } = await post('/v1/training-sessions/s/operations', {
      sequenceNumber: 1,
      operationConfig: { saveState: {} },
    });
    await hold.entered;
    const headers = { 'x-loopwright-wait-seconds': '50' };
    const held = fetch(`${server.url}/v1/training-sessions/s/operations/${String(operationId)}`, { headers });
    const health = await fetch(`${server.url}/health`);
    expect(await health.json()).toMatchObject({ status: 'ok' });
    await server.close();
    await server.close();
    await held.then(async (answer) =>
      expect(await answer.json()).toMatchObject({ status: expect.stringMatching(/Pending|InProgress/) }),
    );
    await expect(fetch(`${server.url}/health`)).rejects.toThrow();
    expect(engine.disposed).toBe(true);
  });

  it('names a port that is taken, and what to do', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const address = other.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const options = base();
    await expect(startServer({ ...options, port })).rejects.toMatchObject({
      code: 'port_in_use',
      message: expect.stringContaining(String(port)),
      details: { remedy: expect.any(String) },
    });
    await new Promise((resolve) => other.close(resolve));
    await (await startServer({ ...options, port })).close();
  });

  it('refuses a data directory that another server uses, until that one has closed', async () => {
    const options = base();
    const first = await startServer(options);
    await expect(startServer(options)).rejects.toMatchObject({
      code: 'data_dir_in_use',
      details: { field: 'dataDir', remedy: expect.any(String) },
    });
    await first.close();
    await (await startServer(options)).close();
  });

  it('stops the live sessions of an earlier process where they are not to go on', async () => {
    const options = base();
    const first = await startServer(options);
    const call = async (server: { url: string }, target: string, body: unknown) => {
      const headers = { 'content-type': 'application/json', 'x-amz-target': `SageMaker.${target}` };
      const answer = await fetch(server.url, { method: 'POST', headers, body: JSON.stringify(body) });
      return (await answer.json()) as Record<string, unknown>; // true: every answer is an object
    };
    const ModelConfig = { BaseModelArn: hubContentArn({ name: 'fake-model', version: '1.0.0' }) };
    await call(first, 'CreateTrainingSession', { TrainingSessionName: 's', ...placeholders, ModelConfig });
    await first.close();
    await using second = await startServer({ ...options, leftoverSessions: 'stop' });
    const detail = async () =>
      (await call(second, 'DescribeTrainingSession', { TrainingSessionName: 's' })).TrainingSessionDetail;
    await expect.poll(detail).toMatchObject({ TrainingSessionStatus: 'Stopped' });
  });

  it.each(['0.0.0.0', '::', '192.168.1.5', 'example.org'])('does not listen on %s without a key', async (host) => {
    await expect(startServer({ ...base(), host })).rejects.toMatchObject({
      code: 'invalid_argument',
      details: { field: 'host' },
    });
  });

  it.each([-1, Number.NaN, 2 ** 31])('refuses to put sessions on the disk after %s ms', async (swapAfterMs) => {
    await expect(startServer({ ...base(), swapAfterMs })).rejects.toMatchObject({
      code: 'invalid_argument',
      details: { field: 'swapAfterMs' },
    });
  });

  it('refuses a key that is short', async () => {
    await expect(startServer({ ...base(), apiKey: 'short' })).rejects.toMatchObject({ details: { field: 'apiKey' } });
  });
});
