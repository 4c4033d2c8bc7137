/** What may be asked for beside tokens: the likeliest at sampled positions, named tokens along the prompt, an end that is not one. */
import { idTensor } from '@loopwright/protocol';
import { expectClose, rejection, tinyModelDirectory, tolerances } from '@loopwright/testkit';
import { expect, it } from 'vitest';
import { base, prompt, sampleRequest, tinyEngine } from '../testing/tiny-engine.js';

it('the likeliest tokens at each sampled position are those of a prompt that goes on so', async () => {
  await using test = await tinyEngine('llama-tied');
  const ids = prompt(5);
  const request = { ...sampleRequest(ids, { numSamples: 2, seed: 3 }), topkSampleLogprobs: 4 };
  const { sequences } = await test.engine.sample(request);
  for (const { tokens, logprobs, topkLogprobs } of sequences) {
    const whole = Int32Array.from([...ids, ...tokens]);
    const scored = await test.engine.sample({ ...sampleRequest(whole, { maxTokens: 1 }), topkPromptLogprobs: 4 });
    expect(topkLogprobs).toEqual(scored.topkPromptLogprobs!.slice(ids.length));
    tokens.forEach((id, position) => {
      const cell = topkLogprobs![position]!.find(({ tokenId }) => tokenId === id);
      if (cell !== undefined) {
        expectClose(Float32Array.of(cell.logprob), Float32Array.of(logprobs[position]!), tolerances.tinyLogprobs);
      }
    });
  }
});

it('named tokens along a prompt have the values that the likeliest have there', async () => {
  await using test = await tinyEngine('llama-tied');
  const ids = prompt(9);
  const { topkPromptLogprobs: top } = await test.engine.sample({ ...sampleRequest(ids), topkPromptLogprobs: 3 });
  const data = Int32Array.from(top!.slice(1).flatMap((row) => [row[2]!.tokenId, -1, row[0]!.tokenId]));
  const { promptTargetLogprobs: values } = await test.engine.sample({
    ...sampleRequest(ids),
    promptTargets: idTensor(data, [ids.length - 1, 3]),
  });
  const expected = top!.slice(1).flatMap((row) => [row[2]!.logprob, Number.NaN, row[0]!.logprob]);
  expect(Array.from(values!)).toEqual(expected);
});

it.each([
  ['another number of rows', [2, 3], /8 rows/],
  ['an id outside the vocabulary', [8, 1], /promptTargets\[0\]/],
] as const)('named tokens are refused for %s', async (_, shape, message) => {
  await using test = await tinyEngine('llama-tied');
  const promptTargets = idTensor(new Int32Array(shape[0] * shape[1]).fill(100_000), shape);
  const error = await rejection(test.engine.sample({ ...sampleRequest(prompt(9)), promptTargets }));
  expect(String(error)).toMatch(message);
});

it('log-probabilities of the last tokens of a prompt are those of all, and the others are left out', async () => {
  await using test = await tinyEngine('llama-tied');
  const request = { ...sampleRequest(prompt(6), { promptLogprobs: true }) };
  const { promptLogprobs: all } = await test.engine.sample(request);
  const { promptLogprobs: last } = await test.engine.sample({ ...request, promptLogprobsLast: 2 });
  expect(Array.from(last!)).toEqual([...new Array(4).fill(Number.NaN), all![4], all![5]]);
});

it('an end of sequence that is to be ignored ends nothing', async () => {
  await using test = await tinyEngine('llama-tied', { directory: tinyModelDirectory('llama-tied') });
  const greedy = sampleRequest(prompt(3), { temperature: 0, maxTokens: 40 });
  const seeds = Array.from({ length: 40 }, (_, seed) => seed);
  const sampled = await Promise.all(
    seeds.map((seed) =>
      test.engine.sample({ ...greedy, weights: base, params: { ...greedy.params, temperature: 1.7, seed } }),
    ),
  );
  const stopped = sampled.findIndex(({ sequences }) => sequences[0]!.stopReason === 'stop');
  expect(stopped).toBeGreaterThanOrEqual(0);
  const [ended] = sampled[stopped]!.sequences;
  const { sequences } = await test.engine.sample({
    ...greedy,
    params: { ...greedy.params, temperature: 1.7, seed: stopped, ignoreEos: true },
  });
  expect(sequences[0]!.stopReason).toBe('length');
  expect(Array.from(sequences[0]!.tokens.subarray(0, ended!.tokens.length))).toEqual(Array.from(ended!.tokens));
});
