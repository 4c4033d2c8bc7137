/** A recorded session of every kind of operation, on an engine without a model, and replays of it. */
import { join } from 'node:path';
import { LoopwrightError } from '@loopwright/protocol';
import { FakeEngine } from '@loopwright/testkit';
import { afterEach, expect } from 'vitest';
import { type ReplayOptions, type ReplayReport, replay } from '../replay/replay.js';
import { pass, saveState, saveWeights, step } from './operations.js';
import { openTestServer, type TestServer, type TestServerOptions } from './test-server.js';

const open: TestServer[] = [];

/** A server that is closed after the test. */
export async function opened(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await openTestServer(options);
  open.push(server);
  return server;
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

export interface Recording {
  readonly server: TestServer;
  readonly operationIds: ReadonlyMap<number, string>;
}

interface RecordOptions {
  readonly options?: TestServerOptions;
  readonly session?: string;
  readonly learningRate?: number;
  /** Submitted before the rest is, in this order of seeds. */
  readonly seeds?: readonly number[];
}

/** Passes added up, steps, saves of both kinds, a load, samples of three kinds of weights, a failed pass and the step behind it. */
export async function record({
  options,
  session = 's',
  learningRate = 2e-4,
  seeds = [1, 2],
}: RecordOptions = {}): Promise<Recording> {
  const server = await opened(options);
  await server.createSession(session);
  const sample = async (seed: number) => {
    const id = await server.sample(session, { samplingParams: { maxTokens: 4, seed } });
    return server.result(session, id, 'sampling-operations');
  };
  await sample(9);
  const ids = new Map<number, string>();
  const train = async (number: number, operation: Parameters<TestServer['submit']>[2]) => {
    const { body } = await server.submit(session, number, operation);
    ids.set(number, String(body.operationId));
    return server.result(session, String(body.operationId));
  };
  await train(1, pass());
  await train(2, pass([9, 8]));
  await train(3, step());
  const saved = await train(4, saveState);
  const arn = String(saved.operationResult?.saveState?.modelPackageArn);
  for (const seed of seeds) await sample(seed);
  server.engine.failNext('pass', new LoopwrightError({ code: 'cancelled', message: 'enough' }));
  await train(5, pass([1]));
  await train(6, step());
  await train(7, pass([3]));
  await train(8, step(learningRate));
  await train(9, saveWeights());
  await sample(3);
  const version = decodeURIComponent(arn.slice(arn.indexOf('model-package/') + 'model-package/'.length));
  await train(10, { type: 'load-state', version, loadOptimizer: true });
  await train(11, pass([4, 4], 'forward'));
  await train(12, pass([4, 4]));
  await train(13, step());
  await train(14, saveState);
  await server.close();
  return { server, operationIds: ids };
}

/** A replay of what a server recorded, on an engine without a model. */
export function replayOptions({ dataDir, modelDir }: TestServer, more: Partial<ReplayOptions> = {}): ReplayOptions {
  return {
    dataDir,
    models: [{ id: 'fake-model', directory: modelDir }],
    cacheDirectory: join(dataDir, 'unused'),
    createEngine: async () => new FakeEngine({ incarnation: 'replay' }),
    ...more,
  };
}

/** The report of the one session that there is. */
export async function replayed(server: TestServer, more: Partial<ReplayOptions> = {}): Promise<ReplayReport> {
  const [report, ...others] = await replay(replayOptions(server, more));
  expect(others).toEqual([]);
  return report!;
}
