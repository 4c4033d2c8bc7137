/** The thinnest real path: client, server and embedded engine, over HTTP, on a tiny random model. */
import { access, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { connect, sftDatum } from 'loopwright';
import { expect, test } from 'vitest';
import { makeTinyModel } from './support/tiny-model.js';

test('one LoRA step and one sample go from the client through the server to the engine and back', async () => {
  await using folder = await temporaryDirectory();
  const model = await makeTinyModel(join(folder.path, 'model'));
  await using service = await connect({ dataDir: join(folder.path, 'data'), models: { tiny: model } });
  expect(await service.listBaseModels()).toContain('tiny');

  const training = await service.createLoraTrainingClient({ baseModel: 'tiny', rank: 4, seed: 1 });
  const tokenizer = await training.getTokenizer();
  const prompt = tokenizer.encode('2+2=');
  const data = [sftDatum({ prompt, completion: tokenizer.encode('4!') })];

  const first = training.forwardBackward(data, 'cross_entropy');
  const update = training.optimStep({ learningRate: 1e-2 });
  const second = training.forward(data, 'cross_entropy');
  const losses = [(await first).outputs[0]!.loss, (await second).outputs[0]!.loss];
  expect(losses[0]).toBeGreaterThan(losses[1]!);
  expect((await update).metrics).toMatchObject({ 'optim/step': 1, 'optim/lr': 1e-2 });

  const sampler = await training.saveWeightsAndGetSamplingClient();
  const { sequences } = await sampler.sample(prompt, { numSamples: 2, maxTokens: 5, seed: 7 });
  expect(sequences).toHaveLength(2);
  for (const { tokens, logprobs } of sequences) expect(logprobs).toHaveLength(tokens.length);
  // The sampler's and the trainer's logprob of the same tokens and weights are one number.
  const trained = (await training.forward(data, 'cross_entropy')).outputs[0]!.logprobs;
  const scored = await sampler.computeLogprobs([...prompt, ...tokenizer.encode('4!')]);
  for (const [i, logprob] of trained.entries()) expect(Math.abs(logprob - scored[i + 1]!)).toBeLessThan(1e-4);
});

test('an absolute directory serves as base model, and a saved adapter lies in a folder that other tools read', async () => {
  await using folder = await temporaryDirectory();
  const model = await makeTinyModel(join(folder.path, 'model'));
  await using service = await connect({ dataDir: join(folder.path, 'data') });
  const training = await service.createLoraTrainingClient({ baseModel: model, rank: 2, seed: 1 });
  const { modelPackageArn } = await training.saveWeightsForSampler({ description: 'mine' });
  const directory = await service.versionDirectory(modelPackageArn);
  expect(await readdir(directory!)).toEqual(
    expect.arrayContaining(['adapter_config.json', 'adapter_model.safetensors']),
  );
});

test('a saved state outlives its process, and goes on exactly where it was', async () => {
  await using folder = await temporaryDirectory();
  const models = { tiny: await makeTinyModel(join(folder.path, 'model')) };
  const dataDir = join(folder.path, 'data');
  const data = [sftDatum({ prompt: [5, 6], completion: [7, 8, 9] })];
  const step = async (training: Awaited<ReturnType<typeof start>>) => {
    const pass = training.forwardBackward(data, 'cross_entropy');
    await training.optimStep({ learningRate: 1e-3 });
    return (await pass).outputs[0]!.loss;
  };
  const start = (service: Awaited<ReturnType<typeof connect>>) =>
    service.createLoraTrainingClient({ baseModel: 'tiny', rank: 4, seed: 3 });

  let arn = '';
  let undisturbed = 0;
  {
    await using service = await connect({ dataDir, models });
    const training = await start(service);
    await step(training);
    await step(training);
    arn = (await training.saveState()).modelPackageArn;
    await step(training);
    undisturbed = await step(training);
  }
  await using service = await connect({ dataDir, models });
  const resumed = await service.createTrainingClientFromStateWithOptimizer({ modelPackageArn: arn });
  await step(resumed);
  expect(await step(resumed)).toBe(undisturbed);
  const fresh = await service.createTrainingClientFromState({ modelPackageArn: arn });
  await step(fresh);
  expect(await step(fresh)).not.toBe(undisturbed);
});

test('closing the connection ends the embedded server', async () => {
  await using folder = await temporaryDirectory();
  const service = await connect({ dataDir: join(folder.path, 'data') });
  expect((await fetch(`${service.baseUrl}/health`)).status).toBe(200);
  await service.close();
  await service.close();
  await expect(fetch(`${service.baseUrl}/health`)).rejects.toThrow();
  await access(join(folder.path, 'data', 'loopwright.db'));
});
