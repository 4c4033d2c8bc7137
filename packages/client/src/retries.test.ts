/** Requests that fail: what is tried again, with which key, after how long, and what is not. */
import { LoopwrightError } from '@loopwright/protocol';
import { expect, test } from 'vitest';
import { ServiceClient } from './service-client.js';
import type { SeenRequest } from './testing/fake-server.js';
import { datum, failure, setUp, setUpTraining } from './testing/setup.js';

const isSubmission = ({ method, path }: SeenRequest) => method === 'POST' && path.endsWith('/operations');
const isPoll = ({ method, path }: SeenRequest) => method === 'GET' && path.includes('/operations/');

test('a submission whose answer was lost is repeated under the same number and token, and runs once', async () => {
  const { server, training } = await setUpTraining();
  server.faults.push({ when: isSubmission, fault: 'lose-answer' }, { when: isSubmission, fault: 'lose-request' });
  await training.forwardBackward([datum()], 'cross_entropy');
  const bodies = server.seen.filter(isSubmission).map(({ body }) => body);
  expect(bodies).toHaveLength(3);
  expect(new Set(bodies).size).toBe(1);
  expect(server.training).toHaveLength(1);
  expect(server.training[0]?.clientToken).toMatch(/^[0-9a-f-]{36}$/);
});

test('a lost poll is repeated', async () => {
  const { server, training } = await setUpTraining();
  server.faults.push({ when: isPoll, fault: 'lose-answer' });
  await training.optimStep();
  expect(server.seen.filter(isPoll)).toHaveLength(2);
});

test('the delay that the server asks for is kept', async () => {
  const { server, clock, training } = await setUpTraining();
  const full = new LoopwrightError({ code: 'limit_exceeded', message: 'full', details: { retryAfterMs: 7000 } });
  server.faults.push({ when: isSubmission, fault: full });
  await training.optimStep();
  expect(clock.sleeps[0]).toBeGreaterThanOrEqual(7000);
});

test('what the server refuses is not repeated', async () => {
  const { server, clock, training } = await setUpTraining();
  server.faults.push({ when: isSubmission, fault: new LoopwrightError({ code: 'unauthenticated', message: 'no' }) });
  expect((await failure(training.optimStep())).code).toBe('unauthenticated');
  expect(server.seen.filter(isSubmission)).toHaveLength(1);
  expect(clock.sleeps).toEqual([]);
});

test('a sampling request whose answer was lost comes again with its token', async () => {
  const { server, training } = await setUpTraining();
  const sampler = training.createSamplingClient();
  const isSample = ({ path, method }: SeenRequest) => method === 'POST' && path.endsWith('/sampling-operations');
  server.faults.push({ when: isSample, fault: 'lose-answer' });
  await sampler.sample([1, 2, 3], { maxTokens: 2 });
  await sampler.sample([1, 2, 3], { maxTokens: 2 });
  const tokens = server.seen.filter(isSample).map(({ headers }) => headers.get('x-loopwright-client-token'));
  expect(tokens).toHaveLength(3);
  expect(tokens[0]).toMatch(/^[0-9a-f-]{36}$/);
  expect(tokens[1]).toBe(tokens[0]);
  expect(tokens[2]).not.toBe(tokens[0]);
});

test('a fault of the server is tried a few times only', async () => {
  const { server, training } = await setUpTraining();
  const fault = new LoopwrightError({ code: 'internal', message: 'a bug' });
  for (let i = 0; i < 20; i++) server.faults.push({ when: isSubmission, fault });
  expect((await failure(training.optimStep())).code).toBe('internal');
  expect(server.seen.filter(isSubmission)).toHaveLength(4);
});

test('a server that is gone is waited for up to five minutes by training, and what is queued fails with it', async () => {
  const { server, clock, training } = await setUpTraining();
  for (let i = 0; i < 1000; i++) server.faults.push({ when: isSubmission, fault: 'lose-request' });
  const first = training.optimStep();
  const second = training.saveState();
  const [one, two] = await Promise.all([failure(first), failure(second)]);
  expect(one.code).toBe('connection_lost');
  expect(one.message).toContain('http://fake.test');
  expect(two.code).toBe('connection_lost');
  expect(clock.now()).toBeGreaterThan(240_000);
  expect(clock.now()).toBeLessThanOrEqual(300_000);
});

test('so does the beginning of a session, once the server has answered', async () => {
  const { server, clock, service } = setUp();
  await service.listBaseModels();
  const isCreation = ({ headers }: SeenRequest) =>
    headers.get('x-amz-target')?.endsWith('CreateTrainingSession') === true;
  for (let i = 0; i < 12; i++) server.faults.push({ when: isCreation, fault: 'lose-request' });
  await service.createLoraTrainingClient({ baseModel: 'tiny', rank: 4 });
  expect(clock.now()).toBeGreaterThan(15_000);
});

test('a person is not kept waiting that long', async () => {
  const { server, clock, service } = setUp();
  await service.listBaseModels();
  for (let i = 0; i < 1000; i++) server.faults.push({ when: () => true, fault: 'lose-request' });
  expect((await failure(service.listBaseModels())).code).toBe('connection_lost');
  expect(clock.now()).toBeGreaterThan(7_000);
  expect(clock.now()).toBeLessThanOrEqual(15_000);
});

test('a server that never answered is given up after a few tries within 3 s, with a sentence that says what to check', async () => {
  const { server, clock, service } = setUp();
  for (let i = 0; i < 1000; i++) server.faults.push({ when: () => true, fault: 'lose-request' });
  const error = await failure(service.listBaseModels());
  expect(error).toMatchObject({ code: 'connection_lost', details: { field: 'baseUrl' } });
  expect(error.message).toBe(
    'the server at http://fake.test could not be reached; check that it runs and that the address is right',
  );
  expect(server.seen.length).toBeGreaterThan(2);
  expect(clock.now()).toBeLessThanOrEqual(3_000);
});

test('an abort ends the wait between two attempts', async () => {
  const controller = new AbortController();
  const service = new ServiceClient({
    baseUrl: 'http://fake.test',
    fetch: async () => {
      queueMicrotask(() => controller.abort());
      throw new TypeError('fetch failed');
    },
    random: () => 1,
  });
  expect((await failure(service.listBaseModels({ signal: controller.signal }))).code).toBe('cancelled');
  expect((await failure(service.listBaseModels({ signal: AbortSignal.abort() }))).code).toBe('cancelled');
});

test('the key travels in the header and never in an error', async () => {
  const { server, service } = setUp();
  for (let i = 0; i < 1000; i++) server.faults.push({ when: () => true, fault: 'lose-request' });
  const error = await failure(service.listBaseModels());
  expect(server.seen[0]?.headers.get('authorization')).toBe('Bearer secret-key');
  expect(JSON.stringify(error) + String(error.stack) + error.message).not.toContain('secret-key');
});

test('an answer that is not JSON says that the address may be wrong', async () => {
  const service = new ServiceClient({ baseUrl: 'http://fake.test', fetch: async () => new Response('<html>hello') });
  const error = await failure(service.listBaseModels());
  expect(error).toMatchObject({ code: 'invalid_argument', details: { field: 'baseUrl' } });
  expect(error.message).not.toContain('hello');
});

test.each(['nonsense', 'ftp://x', ''])('the address %j is refused at construction', (baseUrl) => {
  expect(() => new ServiceClient({ baseUrl })).toThrow(expect.objectContaining({ code: 'invalid_argument' }));
});

test.each(Array.from({ length: 20 }, (_, seed) => seed))(
  'whatever is lost or throttled on the way, every operation runs once and in order (seed %i)',
  async (seed) => {
    const { server, training } = await setUpTraining();
    let state = seed * 7919 + 1;
    const draw = () => {
      state = (state * 48271) % 2147483647;
      return state / 2147483647;
    };
    const throttled = new LoopwrightError({ code: 'limit_exceeded', message: 'full' });
    const faults = [throttled, 'lose-request', 'lose-answer'] as const;
    for (let i = 0; i < 40; i++) {
      const fault = faults[Math.floor(draw() * 3)]!;
      server.faults.push({ when: ({ path }) => path.includes('/operations') && draw() < 0.3, fault });
    }
    const calls = Array.from({ length: 12 }, (_, index) => {
      if (index % 3 === 0) return training.forwardBackward([datum(index)], 'cross_entropy');
      return index % 3 === 1 ? training.optimStep() : training.saveState();
    });
    const cancelled = new Set([4, 8].filter(() => draw() < 0.5));
    for (const index of cancelled) calls[index]?.cancel();
    await Promise.allSettled(calls);
    const kept = calls.flatMap((_, index) => (cancelled.has(index) ? [] : index));
    const types = ['forward-backward', 'optim-step', 'save-state'];
    expect(server.training.map(({ operation }) => operation.type)).toEqual(kept.map((index) => types[index % 3]));
    expect(server.training.map(({ sequenceNumber }) => sequenceNumber)).toEqual(kept.map((_, index) => index + 1));
    expect(calls.map(({ state: end }) => end)).toEqual(
      calls.map((_, index) => (cancelled.has(index) ? 'cancelled' : 'completed')),
    );
  },
);
