/** A base model that nothing uses is let go, and loaded again when it is asked for. */
import { FakeEngine } from '@loopwright/testkit';
import { afterEach, expect, it } from 'vitest';
import { ManualClock } from '../testing/manual-clock.js';
import { openTinkerClient, type TinkerClient } from '../testing/tinker-client.js';

const open: TinkerClient[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map(({ server }) => server.close()));
});

/** A client with a sampler of the base model, and the engines that the server made so far. */
async function served(swapAfterMs?: number | null) {
  const clock = new ManualClock();
  const engines: FakeEngine[] = [];
  const client = await openTinkerClient({
    ...{ clock, sweepMs: 1e9, ...(swapAfterMs === undefined ? {} : { swapAfterMs }) },
    engineFactory: async (_card, { onExit }) => {
      engines.push(new FakeEngine({ incarnation: `engine-${engines.length}`, onExit }));
      return engines.at(-1)!;
    },
  });
  open.push(client);
  const request = { session_id: client.session, sampling_session_seq_id: 0, base_model: 'fake-model' };
  const sampler = String((await client.ok('create_sampling_session', request)).sampling_session_id);
  return {
    ...{ client, engines },
    sample: async (number: number) => client.result((await client.sample(sampler, number)).body),
    submit: async (number: number) => (await client.sample(sampler, number)).body,
    afterMinutes: async (minutes: number) => {
      clock.advance(minutes * 60_000);
      await client.server.sweep();
      return engines.map(({ disposed }) => disposed);
    },
  };
}

it('that is sampled from goes after ten minutes without a request, and the next request loads it again', async () => {
  const { client, engines, sample, afterMinutes } = await served();
  const first = await sample(1);
  expect(await afterMinutes(1)).toEqual([false]);
  expect(await afterMinutes(9)).toEqual([false]);
  await sample(2);
  expect(await afterMinutes(1)).toEqual([false]);
  expect(await afterMinutes(10)).toEqual([false]);
  expect(await afterMinutes(1)).toEqual([true]);
  expect((await client.server.request('GET', '/health')).body.engines).toEqual([]);
  expect(await sample(1)).toEqual(first); // the answer of that number is there; nothing is loaded for it
  expect(engines).toHaveLength(1);
  expect(await sample(3)).toMatchObject({ type: 'sample' });
  expect(engines.map(({ disposed }) => disposed)).toEqual([true, false]);
});

it('stays while a request runs, however long', async () => {
  const { client, engines, sample, submit, afterMinutes } = await served();
  await sample(1);
  const hold = engines[0]!.hold('sample');
  const request = await submit(2);
  await hold.entered;
  for (const minutes of [1, 30, 20]) expect(await afterMinutes(minutes)).toEqual([false]);
  hold.release();
  expect(await client.result(request)).toMatchObject({ type: 'sample' });
});

it('stays while a session trains on it, and goes after its end', async () => {
  const { client, afterMinutes } = await served();
  const model = await client.model();
  for (const minutes of [1, 30, 20]) expect(await afterMinutes(minutes)).toEqual([false]);
  await client.result(await client.ok('unload_model', { model_id: model }));
  expect(await afterMinutes(1)).toEqual([false]);
  expect(await afterMinutes(11)).toEqual([true]);
});

it('stays where the server is told to keep all in memory', async () => {
  const { sample, afterMinutes } = await served(null);
  await sample(1);
  for (const minutes of [1, 30, 20]) expect(await afterMinutes(minutes)).toEqual([false]);
});
