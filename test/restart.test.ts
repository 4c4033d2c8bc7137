/** What a server has told stays told: results, versions and sessions outlive its process. */
import { join } from 'node:path';
import { startServer } from '@loopwright/server';
import { temporaryDirectory } from '@loopwright/testkit';
import { ServiceClient } from 'loopwright';
import { expect, test } from 'vitest';
import { makeTinyModel } from './support/tiny-model.js';

test('results of a session, and the session itself, are there after the server started again', async () => {
  await using folder = await temporaryDirectory();
  const models = [{ id: 'tiny', directory: await makeTinyModel(join(folder.path, 'model')) }];
  const options = { dataDir: join(folder.path, 'data'), models };
  const data = [{ modelInput: [5, 6, 7], lossFnInputs: { targetTokens: [6, 7, 8], weights: [0, 1, 1] } }];

  const first = await startServer(options);
  const before = new ServiceClient({ baseUrl: first.url });
  const training = await before.createLoraTrainingClient({ baseModel: 'tiny', rank: 2, seed: 1, name: 'survivor' });
  const pass = training.forwardBackward(data, 'cross_entropy');
  const step = training.optimStep({ learningRate: 1e-3 });
  const loss = (await pass).outputs[0]!.loss;
  await step;
  const path = `/v1/training-sessions/survivor/operations/${pass.operationId}`;
  const told = await (await fetch(first.url + path)).json();
  const { modelPackageArn } = await training.saveState({ description: 'before the restart' });
  await first.close();

  await using second = await startServer(options);
  expect(await (await fetch(second.url + path)).json()).toEqual(told);
  const after = new ServiceClient({ baseUrl: second.url });
  expect(await after.listSessions({ nameContains: 'survivor' })).toMatchObject([{ name: 'survivor' }]);
  expect(await after.listModelPackages({ kind: 'state' })).toMatchObject([
    { modelPackageArn, description: 'before the restart' },
  ]);
  const resumed = await after.createTrainingClientFromStateWithOptimizer({ modelPackageArn });
  const { outputs } = await resumed.forward(data, 'cross_entropy');
  expect(outputs[0]!.loss).toBeLessThan(loss);
  await after.close();
});

test('a version of a merged sampler gives the same tokens and log-probabilities after the server started again', async () => {
  await using folder = await temporaryDirectory();
  const models = [{ id: 'tiny', directory: await makeTinyModel(join(folder.path, 'model')) }];
  const options = { dataDir: join(folder.path, 'data'), models };
  const data = [{ modelInput: [5, 6, 7], lossFnInputs: { targetTokens: [6, 7, 8], weights: [0, 1, 1] } }];
  const asked = { numSamples: 2, maxTokens: 8, seed: 4 };

  const first = await startServer(options);
  const before = new ServiceClient({ baseUrl: first.url });
  const merged = { baseModel: 'tiny', rank: 2, seed: 1, samplerPath: 'merged' } as const;
  const training = await before.createLoraTrainingClient(merged);
  await Promise.all([training.forwardBackward(data, 'cross_entropy'), training.optimStep({ learningRate: 0.01 })]);
  const { modelPackageArn } = await training.saveWeightsForSampler({ description: 'merged' });
  const state = await training.saveState({ description: 'to go on from' });
  const told = await (await before.createSamplingClient({ modelPackageArn })).sample([5, 6], asked);
  await first.close();

  await using second = await startServer(options);
  const after = new ServiceClient({ baseUrl: second.url });
  const again = await (await after.createSamplingClient({ modelPackageArn })).sample([5, 6], asked);
  expect(again.sequences).toEqual(told.sequences);
  // A session that goes on from a state samples the same way.
  const resumed = await after.createTrainingClientFromStateWithOptimizer({ modelPackageArn: state.modelPackageArn });
  const sampler = await resumed.saveWeightsAndGetSamplingClient();
  expect((await sampler.sample([5, 6], asked)).sequences).toEqual(told.sequences);
  await after.close();
});
