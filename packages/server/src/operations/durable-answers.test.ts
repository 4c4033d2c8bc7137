/** What is said of an operation while the disk has not confirmed it yet. */
import { afterEach, describe, expect, it } from 'vitest';
import { pass } from '../testing/operations.js';
import { SlowDisk } from '../testing/slow-disk.js';
import { openTestServer, type TestServer } from '../testing/test-server.js';

let server: TestServer;
let disk: SlowDisk;
const opened = async () => {
  disk = new SlowDisk();
  server = await openTestServer({ sync: disk.sync });
  await server.createSession('s');
};
afterEach(async () => {
  disk.release();
  disk.mend();
  await server.close();
});

/** Whether it has ended within a few turns of the event loop. */
async function hasEnded(work: Promise<unknown>): Promise<boolean> {
  let ended = false;
  void work.then(() => {
    ended = true;
  });
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  return ended;
}

const sample = {
  prompt: { chunks: [{ type: 'encoded_text', tokens: [5, 6] }] },
  numSamples: 1,
  samplingParams: { maxTokens: 1 },
};
const held = (waitSeconds: string) =>
  server.request(
    'POST',
    '/v1/training-sessions/s/sampling-operations',
    { operationConfig: { sample } },
    {
      'x-loopwright-wait-seconds': waitSeconds,
    },
  );

describe('before the disk has confirmed the acceptance', () => {
  it.each([
    ['a training operation', () => server.submit('s', 1, pass())],
    ['a sampling operation', () => server.submitSample('s')],
    ['a held sampling operation whose time is over', () => held('0')],
    ['a held sampling operation that has ended', () => held('20')],
  ])('%s is not answered', async (_, submit) => {
    await opened();
    disk.hold();
    const answer = submit();
    await disk.asked();
    expect(await hasEnded(answer)).toBe(false);
    disk.release();
    expect((await answer).status).toBe(200);
  });

  it('a held sampling operation is at work already', async () => {
    await opened();
    const engine = server.engine.hold('sample');
    disk.hold();
    const answer = held('20');
    await engine.entered;
    engine.release();
    await disk.asked();
    expect(await hasEnded(answer)).toBe(false);
    disk.release();
    expect((await answer).body).toMatchObject({ status: 'Completed' });
  });
});

it('an ending that the disk has not confirmed is told to nobody', async () => {
  await opened();
  const engine = server.engine.hold('sample');
  const { body } = await server.submitSample('s');
  await engine.entered;
  disk.hold();
  engine.release();
  await disk.asked();
  const asked = server.result('s', String(body.operationId), 'sampling-operations', 20);
  expect(await hasEnded(asked)).toBe(false);
  disk.release();
  expect(await asked).toMatchObject({ status: 'Completed' });
});
