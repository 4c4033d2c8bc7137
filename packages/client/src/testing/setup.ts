/** A client on a fake server, and data to send. */
import type { DatumFor, LoopwrightError } from '@loopwright/protocol';
import { ServiceClient } from '../service-client.js';
import type { TrainingClient } from '../training-client.js';
import { FakeServer } from './fake-server.js';
import { TestClock } from './test-clock.js';

export interface Setup {
  readonly server: FakeServer;
  readonly clock: TestClock;
  readonly service: ServiceClient;
}

export function setUp(): Setup {
  const server = new FakeServer();
  const clock = new TestClock();
  const service = new ServiceClient({
    baseUrl: 'http://fake.test/',
    apiKey: 'secret-key',
    fetch: server.fetch,
    clock,
    random: () => 0.5,
  });
  return { server, clock, service };
}

export async function setUpTraining(): Promise<Setup & { readonly training: TrainingClient }> {
  const setup = setUp();
  return {
    ...setup,
    training: await setup.service.createLoraTrainingClient({ baseModel: 'tiny', rank: 8, name: 'run-1' }),
  };
}

/** Two tokens; the first is told back by the fake server. */
export function datum(token = 1): DatumFor<'cross_entropy'> {
  return { modelInput: [token, 2], lossFnInputs: { targetTokens: [2, 3], weights: [0, 1] } };
}

export function rlDatum(): DatumFor<'ppo'> {
  return {
    modelInput: [1, 2],
    lossFnInputs: { targetTokens: [2, 3], weights: [0, 1], advantages: [0, 1], logprobs: [0, -0.5] },
  };
}

/** The error of a promise that must fail. */
export async function failure(promise: PromiseLike<unknown>): Promise<LoopwrightError> {
  try {
    await promise;
  } catch (error) {
    return error as LoopwrightError; // every error of the client is one; tests look at its code
  }
  throw new Error('it did not fail');
}

/** Waits until something holds, one turn of the event loop after the other. */
export async function until(condition: () => boolean): Promise<void> {
  for (let turn = 0; !condition(); turn++) {
    if (turn > 10_000) throw new Error('it never came to hold');
    await new Promise((resolve) => setImmediate(resolve));
  }
}
