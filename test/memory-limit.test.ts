/** A limit of memory at the public door: what is predicted to need more is refused before any work, with numbers and a remedy. */
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { connect, type DatumFor } from 'loopwright';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { failureOf } from './support/failure.js';

let folder: TemporaryDirectory;

beforeEach(async () => {
  folder = await temporaryDirectory();
});

afterEach(() => folder[Symbol.asyncDispose]());

const connectWith = (maxMemoryBytes: number) => connect({ dataDir: join(folder.path, 'data'), maxMemoryBytes });

function datum(length: number): DatumFor<'cross_entropy'> {
  const ids = Array.from({ length: length + 1 }, (_, i) => 3 + ((i * 7919) % 90));
  const weights = new Array<number>(length).fill(1);
  return { modelInput: ids.slice(0, length), lossFnInputs: { targetTokens: ids.slice(1), weights } };
}

test('a pass that would not fit is refused as a mistake of the call, and the session goes on', async () => {
  await using service = await connectWith(200e6);
  const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 8, seed: 1 });
  const error = await failureOf(() => training.forwardBackward([datum(20), datum(1000)], 'cross_entropy'));
  expect(error.code).toBe('memory_limit_exceeded');
  expect(error.status).toBe(400);
  expect(error.details).toMatchObject({
    field: 'data[1].modelInput',
    expected: expect.stringContaining('200000000 bytes'),
    got: expect.stringMatching(/\d+ bytes/),
    remedy: expect.stringMatching(/shorter sequences.*--max-memory/),
    limitBytes: 200e6,
  });
  expect(error.details.neededBytes).toBeGreaterThan(200e6);
  expect((await failureOf(() => training.optimStep({ learningRate: 1e-4 }))).code).toBe('gradient_incomplete');
  const work = training.forwardBackward([datum(20), datum(200)], 'cross_entropy');
  expect((await training.optimStep({ learningRate: 1e-4 })).metrics['optim/step']).toBe(1);
  expect((await work).outputs).toHaveLength(2);
});

test('a session that would not fit is refused, and so is a limit that is none', async () => {
  await using service = await connectWith(173.5e6);
  const create = () => service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 8 });
  expect(await failureOf(create)).toMatchObject({
    code: 'memory_limit_exceeded',
    details: { field: 'training', remedy: expect.stringContaining('smaller rank') },
  });
  for (const none of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
    expect(await failureOf(() => connectWith(none))).toMatchObject({
      code: 'invalid_argument',
      details: { field: 'maxMemoryBytes' },
    });
});
