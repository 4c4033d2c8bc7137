/** Held sampling operations, which the engine works on before their acceptance is written. */
import { join } from 'node:path';
import { headers } from '@loopwright/wires/sagemaker';
import Database from 'libsql';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Body, openTestServer, type TestServer } from '../testing/test-server.js';

let server: TestServer;
beforeEach(async () => {
  server = await openTestServer();
  await server.createSession('s');
});
afterEach(() => server.close());

const held = (token: string, { maxTokens = 4 }: { readonly maxTokens?: number } = {}) => {
  const sample = {
    prompt: { chunks: [{ type: 'encoded_text', tokens: [1, 2, 3] }] },
    numSamples: 2,
    samplingParams: { maxTokens },
  };
  return server.request(
    'POST',
    '/v1/training-sessions/s/sampling-operations',
    { operationConfig: { sample } },
    { [headers.waitSeconds]: '20', [headers.samplingToken]: token },
  );
};

const samples = () => server.engine.calls.filter((call) => call.startsWith('sample'));

/** What the database holds of operations that were accepted. */
function kept(): { readonly operations: readonly string[]; readonly charges: number } {
  const database = new Database(join(server.dataDir, 'loopwright.db'), { readonly: true });
  const rows = database.prepare('SELECT status FROM operations').all() as { status: string }[]; // true: the column asked for
  const [ledger] = database.prepare('SELECT count(*) AS rows FROM ledger').all() as { rows: number }[]; // true, as above
  database.close();
  return { operations: rows.map(({ status }) => status), charges: ledger!.rows };
}

it('a submission that repeats an earlier one is answered with its result, and kept and charged once', async () => {
  const first = await held('again');
  const second = await held('again');
  expect(second).toMatchObject({ status: 200, body: first.body });
  expect(kept()).toEqual({ operations: ['Completed'], charges: 1 });
});

it('a repetition that comes while the first is at work joins it and gives its own work up', async () => {
  const work = server.engine.hold('sample');
  const first = held('again');
  await work.entered;
  const ownWork = server.engine.hold('sample');
  const second = held('again');
  await ownWork.entered; // its hold is never released: only giving up ends it
  work.release();
  const answers: Body[] = [(await first).body, (await second).body];
  expect(answers[1]).toEqual(answers[0]);
  expect(answers[0]).toMatchObject({ status: 'Completed' });
  expect(kept()).toEqual({ operations: ['Completed'], charges: 1 });
});

it('a refused submission leaves nothing of what was begun for it', async () => {
  await held('taken');
  const refused = await held('taken', { maxTokens: 5 });
  expect(refused.status).toBe(400);
  expect(samples()).toHaveLength(2);
  expect(kept()).toEqual({ operations: ['Completed'], charges: 1 });
});

it('a submission whose turn has not come when it is refused never runs', async () => {
  await server.close();
  server = await openTestServer({ samplingConcurrency: 1 });
  await server.createSession('s');
  await held('taken');
  const work = server.engine.hold('sample');
  const other = held('other');
  await work.entered;
  expect((await held('taken', { maxTokens: 5 })).status).toBe(400);
  work.release();
  expect((await other).body).toMatchObject({ status: 'Completed' });
  expect(samples()).toHaveLength(2);
});
