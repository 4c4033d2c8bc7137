/** Sampling goes on while a training pass runs, and training keeps its order. */
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { connect, type DatumFor } from 'loopwright';
import { expect, test } from 'vitest';
import { makeTinyModel } from './support/tiny-model.js';

interface TraceEntry {
  readonly kind: 'training' | 'sampling';
  readonly type: string;
  readonly sequenceNumber?: number;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  readonly slices: readonly { readonly atMs: number; readonly done: number }[];
}

/** Many long datums: a pass of seconds. */
function longBatch(datums: number): DatumFor<'cross_entropy'>[] {
  return Array.from({ length: datums }, (_, d) => {
    const tokens = Array.from({ length: 401 }, (_, t) => 3 + ((t * 7 + d * 13) % 90));
    return {
      modelInput: tokens.slice(0, -1),
      lossFnInputs: { targetTokens: tokens.slice(1), weights: tokens.slice(1).map(() => 1) },
    };
  });
}

test('tokens are decoded during a long training pass, and the pass is no different for it', async () => {
  await using folder = await temporaryDirectory();
  const models = { tiny: await makeTinyModel(join(folder.path, 'model')) };
  const apiKey = 'a-key-of-this-test';
  await using service = await connect({ dataDir: join(folder.path, 'data'), models, apiKey });
  const training = await service.createLoraTrainingClient({ baseModel: 'tiny', rank: 4, seed: 1 });
  const sampler = await training.saveWeightsAndGetSamplingClient();
  await sampler.sample([5, 6], { maxTokens: 2 });

  const data = longBatch(96);
  const alone = await training.forward(data, 'cross_entropy');

  const pass = training.forward(data, 'cross_entropy');
  const next = training.forward(data.slice(0, 1), 'cross_entropy');
  let isOver = false;
  const ended = pass.then(() => {
    isOver = true;
  });
  let samples = 0;
  while (!isOver) {
    await sampler.sample([5, 6, 7 + samples], { maxTokens: 8, numSamples: 2 });
    samples += 1;
  }
  await ended;
  expect((await pass).outputs).toEqual(alone.outputs);
  await next;

  const answer = await fetch(`${service.baseUrl}/v1/sessions/${training.name}/trace`, {
    headers: { authorization: `Bearer ${apiKey}` },
  });
  const { operations } = (await answer.json()) as { operations: TraceEntry[] }; // true: the server's own route
  const passes = operations.filter(({ type }) => type === 'forward');
  const [, long, last] = passes;
  const during = operations.filter(
    ({ kind, startedAtMs, endedAtMs }) =>
      kind === 'sampling' &&
      startedAtMs >= long!.startedAtMs &&
      endedAtMs !== null &&
      long!.endedAtMs !== null &&
      endedAtMs <= long!.endedAtMs,
  );
  expect(samples).toBeGreaterThan(0);
  expect(during.length).toBeGreaterThan(0);
  // In order: the pass behind began when the long one had ended.
  expect(last!.startedAtMs).toBeGreaterThanOrEqual(long!.endedAtMs!);
});
