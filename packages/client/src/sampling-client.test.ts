/** Sampling: what is asked, what comes back, and that requests run beside each other. */
import { expect, test } from 'vitest';
import { datum, failure, setUp, setUpTraining, until } from './testing/setup.js';

test('a sample carries its parameters and the defaults', async () => {
  const { server, training } = await setUpTraining();
  const sampler = training.createSamplingClient();
  const { sequences } = await sampler.sample([7, 8], {
    numSamples: 2,
    maxTokens: 32,
    stop: 'end',
    stopTokenIds: [3],
    seed: 5,
  });
  await sampler.sample(Int32Array.of(9));
  expect(sequences).toEqual([
    { tokens: [7, 0], logprobs: [-0.25, -0.5], stopReason: 'stop' },
    { tokens: [7, 1], logprobs: [-0.25, -0.5], stopReason: 'stop' },
  ]);
  expect(server.sampling).toMatchObject([
    {
      numSamples: 2,
      params: { maxTokens: 32, temperature: 1, topK: -1, topP: 1, seed: 5, stop: ['end'], stopTokenIds: [3] },
      weights: { type: 'latest' },
      promptLogprobs: false,
      topkPromptLogprobs: 0,
    },
    { numSamples: 1, params: { maxTokens: 512, stop: [] } },
  ]);
  expect(server.sampling[1]).not.toHaveProperty('params.seed');
});

test('prompt logprobs come when asked for, the first as null', async () => {
  const { training } = await setUpTraining();
  const sampler = training.createSamplingClient();
  const asked = await sampler.sample([1, 2], { includePromptLogprobs: true, topkPromptLogprobs: 1 });
  expect(asked.promptLogprobs).toEqual([null, -0.5]);
  expect(asked.topkPromptLogprobs).toEqual([[], [{ tokenId: 1, logprob: -0.5 }]]);
  expect(await sampler.sample([1, 2])).not.toHaveProperty('promptLogprobs');
});

test('computeLogprobs gives one value per token, the first null, and refuses another number', async () => {
  const { training } = await setUpTraining();
  const sampler = training.createSamplingClient();
  expect(await sampler.computeLogprobs([1, 2, 3])).toEqual([null, -0.5, -0.5]);
  expect((await failure(sampler.computeLogprobs([13, 2]))).code).toBe('internal');
});

test('wrong arguments throw at the call and name the option', async () => {
  const { server, training } = await setUpTraining();
  const sampler = training.createSamplingClient();
  expect(() => sampler.sample([])).toThrow(/^prompt: expected at least one token id/);
  expect(() => sampler.sample([1.5])).toThrow(/^prompt\.data\[0\]/);
  expect(() => sampler.sample([1], { numSamples: 0 })).toThrow(/^options\.numSamples/);
  expect(() => sampler.sample([1], { temperature: 3 })).toThrow(/^options\.temperature/);
  expect(() => training.createSamplingClient('latest')).toThrow(/^modelPackageArn/);
  expect(server.sampling).toEqual([]);
});

test('a short sample comes with its submission where the server holds it, and else by asking', async () => {
  const { server, training } = await setUpTraining();
  const sampler = training.createSamplingClient();
  const asked = () => server.requests('sampling-operations').map(({ method }) => method);
  await sampler.sample([7]);
  expect(asked()).toEqual(['POST', 'GET']);
  server.holdsSubmissions = true;
  expect((await sampler.sample([7])).sequences).toHaveLength(1);
  expect(asked()).toEqual(['POST', 'GET', 'POST']);
  server.onSampling = () => 'hold';
  const slow = sampler.sample([7]);
  await until(() => asked().length === 5);
  server.finish();
  await slow;
  expect(asked().slice(3)).toEqual(['POST', 'GET']);
});

test('512 samples run beside each other, and beside training', async () => {
  const { server, training } = await setUpTraining();
  server.onSampling = () => 'hold';
  const sampler = training.createSamplingClient();
  const samples = Array.from({ length: 512 }, (_, index) => sampler.sample([index]));
  await until(() => server.samplesOpen === 512);
  await training.forwardBackward([datum()], 'cross_entropy');
  server.finish();
  const outputs = await Promise.all(samples);
  expect(outputs.map(({ sequences }) => sequences[0]?.tokens[0])).toEqual(samples.map((_, index) => index));
  expect(server.mostSamplesOpen).toBe(512);
});

test('a sample that is cancelled is ended by the server', async () => {
  const { server, training } = await setUpTraining();
  server.onSampling = () => 'hold';
  const controller = new AbortController();
  const sample = training.createSamplingClient().sample([1], { signal: controller.signal });
  await until(() => sample.state === 'submitted');
  controller.abort();
  expect((await failure(sample)).code).toBe('cancelled');
  expect(server.requests('/sampling-operations/').some(({ method }) => method === 'DELETE')).toBe(true);
});

test('a sampler of its own has a session of its own, which ends with it', async () => {
  const { server, service } = setUp();
  {
    await using sampler = await service.createSamplingClient({ baseModel: 'tiny' });
    await sampler.sample([1]);
    expect(server.only.status).toBe('Running');
  }
  expect(server.only.status).toBe('Stopped');
});

test('a closed sampler refuses calls and leaves the session of its training client alone', async () => {
  const { server, training } = await setUpTraining();
  const sampler = training.createSamplingClient();
  await sampler.close();
  expect(() => sampler.sample([1])).toThrow(expect.objectContaining({ code: 'disposed' }));
  expect(server.only.status).toBe('Running');
});
