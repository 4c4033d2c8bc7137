/** Failures that nobody awaited: they never end the process, and are never lost. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { LoopwrightError } from '@loopwright/protocol';
import { expect, test } from 'vitest';
import { datum, failure, setUpTraining, until } from './testing/setup.js';

const outOfMemory = new LoopwrightError({ code: 'out_of_memory', message: 'no room' });

test('a failure that was not awaited comes out at the next await, and names its operation', async () => {
  const { server, training } = await setUpTraining();
  server.onTraining = ({ operation }) => (operation.type === 'forward' ? outOfMemory : undefined);
  const forgotten = training.forward([datum()], 'cross_entropy');
  await until(() => forgotten.state === 'failed');
  const error = await failure(training.saveState());
  expect(error.code).toBe('operation_failed');
  expect(error.message).toBe('forward (sequence number 1) failed and was not awaited: no room');
  expect(error.cause).toMatchObject({ code: 'out_of_memory' });
  expect(error.details.unawaited).toEqual([{ operation: 'forward (sequence number 1)', code: 'out_of_memory' }]);
  await training.saveState(); // told once
  await training.close();
});

test('an await that fails by itself keeps its code and tells of the earlier failure too', async () => {
  const { server, training } = await setUpTraining();
  server.onTraining = ({ operation }) => {
    if (operation.type === 'forward-backward') return outOfMemory;
    return operation.type === 'optim-step'
      ? new LoopwrightError({ code: 'gradient_incomplete', message: 'incomplete' })
      : undefined;
  };
  void training.forwardBackward([datum()], 'cross_entropy');
  const error = await failure(training.optimStep());
  expect(error.code).toBe('gradient_incomplete');
  expect(error.message).toContain('forward-backward (sequence number 1) failed and was not awaited: no room');
});

test('a failure that was awaited late is not told twice', async () => {
  const { server, training } = await setUpTraining();
  server.onTraining = ({ operation }) => (operation.type === 'forward' ? outOfMemory : undefined);
  const late = training.forward([datum()], 'cross_entropy');
  await until(() => late.state === 'failed');
  const error = await failure(late);
  expect(error.message).toBe('no room');
  expect(error.details.unawaited).toBeUndefined();
  await training.optimStep();
  await training.close();
});

test('what nobody awaits at all comes out when the client is closed, several as one', async () => {
  const { server, training } = await setUpTraining();
  server.onTraining = () => outOfMemory;
  void training.forward([datum()], 'cross_entropy');
  void training.saveState();
  const error = await failure(training.close());
  expect(error.message).toContain('forward (sequence number 1) failed');
  expect(error.message).toContain('save-state (sequence number 2) failed');
  expect((error.cause as AggregateError).errors).toHaveLength(2);
  expect(server.only.status).toBe('Stopped');
});

test('failures of a sampler come out at its next await, or when the training client is closed', async () => {
  const { server, training } = await setUpTraining();
  server.onSampling = () => outOfMemory;
  const sampler = training.createSamplingClient();
  const forgotten = sampler.sample([1]);
  await until(() => forgotten.state === 'failed');
  await training.optimStep(); // not its business
  server.onSampling = () => undefined;
  expect((await failure(sampler.sample([1]))).message).toContain('sample failed and was not awaited');

  server.onSampling = () => outOfMemory;
  const other = training.createSamplingClient().sample([1]);
  await until(() => other.state === 'failed');
  expect((await failure(training.close())).message).toContain('sample failed and was not awaited');
});

test('a cancelled operation is no failure to tell of', async () => {
  const { training } = await setUpTraining();
  training.optimStep().cancel();
  training.optimStep().cancel();
  await training.close();
});

test('a process goes on when a queued operation fails while another is awaited', { timeout: 60_000 }, async () => {
  const script = fileURLToPath(new URL('testing/unawaited-failure.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--conditions=loopwright-source',
    '--import',
    await loader(),
    script,
  ]);
  expect(stdout.trim().split('\n')).toEqual(['step awaited', 'told at close: operation_failed']);
});

/** Runs TypeScript from source in a child: what vitest transforms with, as a loader of modules. */
async function loader(): Promise<string> {
  return new URL('testing/register-typescript.mjs', import.meta.url).href;
}
