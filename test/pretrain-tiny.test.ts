/** The script that makes the bundled model gives the same model again, also when it was interrupted. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { arithmetic, connect, type TrainingClient } from 'loopwright';
import { expect, test } from 'vitest';
import { writeInitialModel } from '../tools/pretrain-tiny/src/initial-model.js';
import { type PretrainingStep, pretrain } from '../tools/pretrain-tiny/src/pretrain.js';
import { pretrainingSettings } from '../tools/pretrain-tiny/src/settings.js';

const settings = {
  ...pretrainingSettings,
  corpus: { ...pretrainingSettings.corpus, batchSize: 8, chatEvery: 3 },
  schedule: { steps: 4, warmupSteps: 2, peak: 1e-3, final: 1e-4 },
};

test('pretraining repeated, or interrupted and taken up, ends with the same bytes', async () => {
  await using folder = await temporaryDirectory();
  const initial = join(folder.path, 'initial');
  await writeInitialModel(initial, settings);
  await using service = await connect({ dataDir: join(folder.path, 'data') });
  const train = async (training: TrainingClient, options: { doneSteps?: number; stopAfter?: number } = {}) => {
    const { doneSteps = 0, stopAfter } = options;
    const stop = new AbortController();
    const steps: PretrainingStep[] = [];
    const done = await pretrain({
      ...{ training, settings, doneSteps, environment: arithmetic(), tokenizer: await training.getTokenizer() },
      signal: stop.signal,
      onStep: (step) => {
        steps.push(step);
        if (step.step === stopAfter) stop.abort();
      },
    });
    return { done, steps };
  };
  const weights = async (training: TrainingClient) => {
    const { modelPackageArn } = await training.saveWeightsForSampler();
    return readFile(join((await service.versionDirectory(modelPackageArn)) ?? '', 'model.safetensors'));
  };
  const start = () => service.createTrainingClient({ baseModel: initial, trainingType: 'full', seed: settings.seed });

  const once = await start();
  const { done, steps } = await train(once);
  expect(done).toBe(4);
  expect(steps.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
  const expected = await weights(once);
  expect(expected.equals(await readFile(join(initial, 'model.safetensors')))).toBe(false);

  const again = await start();
  expect((await train(again)).steps).toEqual(steps);
  expect((await weights(again)).equals(expected)).toBe(true);

  const interrupted = await start();
  const first = await train(interrupted, { stopAfter: 2 });
  expect(first.done).toBe(2);
  const { modelPackageArn } = await interrupted.saveState();
  const resumed = await service.createTrainingClientFromStateWithOptimizer({ modelPackageArn, baseModel: initial });
  const second = await train(resumed, { doneSteps: first.done });
  expect([...first.steps, ...second.steps]).toEqual(steps);
  expect((await weights(resumed)).equals(expected)).toBe(true);
});
