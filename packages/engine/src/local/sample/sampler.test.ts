import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { defaultTargetModules, type SampleResult } from '@loopwright/protocol';
import {
  expectClose,
  expectSameBits,
  loraAdapterDirectory,
  rejection,
  type TinyModel,
  temporaryDirectory,
  tinyModels,
  tolerances,
} from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import type { Engine, SampleRequest } from '../../engine.js';
import { readSafetensors, writeSafetensors } from '../../formats/safetensors.js';
import { parseModelConfig } from '../models/config.js';
import { weightSpecs } from '../models/weight-names.js';
import { uniform } from '../random.js';
import {
  adam,
  base,
  crossEntropy,
  datum,
  expectSampledAsScored,
  prompt,
  sampleRequest,
  tinyEngine,
} from '../testing/tiny-engine.js';

const adapted = { type: 'version', id: 'llama-tied', directory: loraAdapterDirectory('llama-tied') } as const;

function expectSameResult(actual: SampleResult, expected: SampleResult): void {
  expect(actual.sequences.map(({ tokens }) => [...tokens])).toEqual(
    expected.sequences.map(({ tokens }) => [...tokens]),
  );
  expected.sequences.forEach(({ logprobs, stopReason }, i) => {
    expectSameBits(actual.sequences[i]!.logprobs, logprobs, `sample ${i}`);
    expect(actual.sequences[i]!.stopReason).toBe(stopReason);
  });
}

/** A way to choose the next token, by name. */
const kinds = {
  draw: {},
  scaled: { temperature: 0.5 },
  hot: { temperature: 1.7 },
  greedy: { temperature: 0 },
  'top-k': { topK: 5 },
  'top-p': { topP: 0.9, temperature: 0.8 },
} as const;

/** A random model of one layer, as wide as SmolLM2-135M. */
async function writeWideModel(directory: string): Promise<void> {
  const json = {
    model_type: 'llama',
    architectures: ['LlamaForCausalLM'],
    vocab_size: 512,
    hidden_size: 576,
    intermediate_size: 1536,
    num_hidden_layers: 1,
    num_attention_heads: 9,
    num_key_value_heads: 3,
    max_position_embeddings: 128,
    rms_norm_eps: 1e-5,
    rope_theta: 10_000,
    hidden_act: 'silu',
    eos_token_id: 2,
    tie_word_embeddings: true,
  };
  await mkdir(directory);
  await writeFile(path.join(directory, 'config.json'), JSON.stringify(json));
  const tensors = weightSpecs(parseModelConfig(json, {})).map(({ name, shape, role }, salt) => ({
    name,
    shape,
    data: Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) =>
      role === 'norm' ? 1 : (uniform(1, salt, i) - 0.5) / 6,
    ),
  }));
  await writeSafetensors(path.join(directory, 'model.safetensors'), tensors);
}

/** Thirty requests of all lengths and kinds. */
function crowd(): SampleRequest[] {
  const ways = Object.values(kinds);
  return Array.from({ length: 30 }, (_, i) =>
    sampleRequest(prompt(1 + ((i * 13) % 90), i), {
      ...ways[i % ways.length],
      seed: 1000 + i,
      numSamples: 1 + (i % 3),
      maxTokens: 3 + ((i * 7) % 40),
      weights: i % 5 === 4 ? adapted : base,
    }),
  );
}

describe('neighbours', () => {
  it.each(Object.entries(kinds))('do not change a bit of what %s samples', async (_, way) => {
    await using test = await tinyEngine('llama-tied', { threads: 2 });
    const request = sampleRequest(prompt(21, 99), { ...way, numSamples: 2, maxTokens: 30, seed: 5 });
    const alone = await test.engine.sample(request);
    const [beside] = await Promise.all([test.engine.sample(request), ...crowd().map((r) => test.engine.sample(r))]);
    expectSameResult(beside, alone);
    // After the crowd the memory of keys and values holds its leftovers.
    expectSameResult(await test.engine.sample(request), alone);
  });

  it('do not change a bit with an adapter, in the order of arrival, or in a batch of one row', async () => {
    await using test = await tinyEngine('llama-tied');
    await using narrow = await tinyEngine('llama-tied', { maxRows: 1 });
    const requests = crowd();
    const together = await Promise.all(requests.map((request) => test.engine.sample(request)));
    const reversed = await Promise.all([...requests].reverse().map((request) => test.engine.sample(request)));
    for (const [i, result] of reversed.reverse().entries()) expectSameResult(result, together[i]!);
    for (const i of [3, 4, 9, 14, 20, 29]) expectSameResult(await narrow.engine.sample(requests[i]!), together[i]!);
  });

  it('change no bit where products are wide enough to be shared out among threads', async () => {
    await using temporary = await temporaryDirectory();
    const directory = path.join(temporary.path, 'model');
    await writeWideModel(directory);
    await using test = await tinyEngine('llama-tied', { directory, threads: 8 });
    const { engine } = test;
    const training = { type: 'lora', rank: 16, alpha: 32, targetModules: defaultTargetModules } as const;
    await engine.createSession({ name: 's', baseModel: 'wide', training, seed: 1 });
    await engine.pass('s', { type: 'forward-backward', data: [datum(30)], loss: crossEntropy });
    await engine.optimStep('s', { ...adam, learningRate: 0.01 });
    const saved = test.folder();
    await engine.saveWeights('s', { version: 'v', directory: saved, merge: false });
    for (const weights of [base, { type: 'version', id: 'v', directory: saved } as const]) {
      const request = sampleRequest(prompt(20), { weights, maxTokens: 6, promptLogprobs: true });
      const alone = await engine.sample(request);
      const others = Array.from({ length: 20 }, (_, i) =>
        engine.sample(sampleRequest(prompt(20, i + 1), { weights, maxTokens: 8, promptLogprobs: true })),
      );
      const [beside] = await Promise.all([engine.sample(request), ...others]);
      expectSameResult(beside, alone);
      expectSameBits(beside.promptLogprobs!, alone.promptLogprobs!);
    }
  });

  it('whose weights have diverged fail alone', async () => {
    await using broken = await temporaryDirectory();
    const source = await readSafetensors(path.join(adapted.directory, 'adapter_model.safetensors'));
    const tensors = [...source.values()].map(({ name, shape, data }) => ({
      name,
      shape,
      data: data.map((x) => x * 1e30),
    }));
    await writeSafetensors(path.join(broken.path, 'adapter_model.safetensors'), tensors);
    await copyFile(path.join(adapted.directory, 'adapter_config.json'), path.join(broken.path, 'adapter_config.json'));
    const weights = { type: 'version', id: 'broken', directory: broken.path } as const;
    await using test = await tinyEngine('llama-tied');
    const request = sampleRequest(prompt(3), { maxTokens: 40 });
    const alone = await test.engine.sample(request);
    const bad = sampleRequest(prompt(60), { weights, numSamples: 4, promptLogprobs: false });
    const [error, beside] = await Promise.all([rejection(test.engine.sample(bad)), test.engine.sample(request)]);
    expect(error).toMatchObject({ code: 'operation_failed', details: { field: 'weights' } });
    expectSameResult(beside, alone);
    expectSameResult(await test.engine.sample(request), alone);
    const scoring = test.engine.computeLogprobs({ prompt: prompt(9), weights });
    expect(await rejection(scoring)).toMatchObject({ code: 'operation_failed' });
  });
});

describe('logprobs', () => {
  it.each(tinyModels)('of sampled tokens are those of scoring, for every kind on %s', async (model: TinyModel) => {
    await using test = await tinyEngine(model);
    for (const way of Object.values(kinds))
      await expectSampledAsScored(test.engine, sampleRequest(prompt(7), { ...way, numSamples: 2, maxTokens: 20 }));
    await expectSampledAsScored(test.engine, sampleRequest(prompt(1), { numSamples: 2, maxTokens: 40 }));
  });

  it('of sampled tokens are those of scoring with an adapter on every layer and on the head', async () => {
    for (const adapter of ['llama-tied', 'llama-tied-lm-head', 'llama-untied-lm-head', 'llama-tied-qv-r4'] as const) {
      await using test = await tinyEngine(adapter === 'llama-untied-lm-head' ? 'llama-untied' : 'llama-tied');
      const weights = { type: 'version', id: adapter, directory: loraAdapterDirectory(adapter) } as const;
      for (const way of Object.values(kinds))
        await expectSampledAsScored(test.engine, sampleRequest(prompt(7), { ...way, weights, maxTokens: 20 }));
    }
  });

  it('of a prompt come with its likeliest tokens, first place empty', async () => {
    await using test = await tinyEngine('qwen2');
    const request = sampleRequest(prompt(20), { promptLogprobs: true, topkPromptLogprobs: 20, maxTokens: 1 });
    const { promptLogprobs, topkPromptLogprobs, prefillTokens } = await test.engine.sample(request);
    const scored = await test.engine.computeLogprobs({ prompt: request.prompt, weights: base });
    expect(prefillTokens).toBe(20);
    expect(promptLogprobs![0]).toBeNaN();
    expectClose(promptLogprobs!.subarray(1), scored.logprobs.subarray(1), tolerances.tinyLogprobs);
    expect(topkPromptLogprobs).toHaveLength(20);
    expect(topkPromptLogprobs![0]).toEqual([]);
    for (const [i, top] of topkPromptLogprobs!.slice(1).entries()) {
      expect(top).toHaveLength(20);
      expect(new Set(top.map(({ tokenId }) => tokenId)).size).toBe(20);
      for (const [k, { logprob }] of top.entries()) if (k > 0) expect(logprob).toBeLessThanOrEqual(top[k - 1]!.logprob);
      const own = top.find(({ tokenId }) => tokenId === request.prompt[i + 1]);
      if (own !== undefined) expect(own.logprob).toBeCloseTo(promptLogprobs![i + 1]!, 5);
      else expect(promptLogprobs![i + 1]).toBeLessThanOrEqual(top[19]!.logprob);
    }
    const [plain, one] = [
      await test.engine.sample(sampleRequest([5], { maxTokens: 1 })),
      await test.engine.sample(sampleRequest([5], { maxTokens: 1, promptLogprobs: true, topkPromptLogprobs: 3 })),
    ];
    expect(plain.promptLogprobs).toBeUndefined();
    expect(plain.topkPromptLogprobs).toBeUndefined();
    expect([...one.promptLogprobs!]).toEqual([Number.NaN]);
    expect(one.topkPromptLogprobs).toEqual([[]]);
  });
});

/** Probabilities of the next token after a prompt, in float64. */
async function distribution(engine: Engine, ids: Int32Array, temperature: number): Promise<number[]> {
  // One scored sequence for each possible token.
  const logprobs = await Promise.all(
    Array.from({ length: 300 }, async (_, token) => {
      const scored = await engine.computeLogprobs({ prompt: Int32Array.of(...ids, token), weights: base });
      return scored.logprobs.at(-1)! / temperature;
    }),
  );
  const total = logprobs.reduce((sum, logprob) => sum + Math.exp(logprob), 0);
  return logprobs.map((logprob) => Math.exp(logprob) / total);
}

/** Keeps the likeliest k, then of these the fewest whose share reaches p. */
function cut(probabilities: readonly number[], { topK, topP }: { topK: number; topP: number }): number[] {
  const order = probabilities.map((_, token) => token).sort((a, b) => probabilities[b]! - probabilities[a]!);
  const first = topK > 0 ? order.slice(0, topK) : order;
  const mass = first.reduce((sum, token) => sum + probabilities[token]!, 0);
  let [sum, count] = [0, 0];
  while (count < first.length && sum < topP * mass) sum += probabilities[first[count++]!]!;
  const kept = new Set(first.slice(0, Math.max(1, count)));
  return probabilities.map((probability, token) => (kept.has(token) ? probability / sum : 0));
}

describe('draws', () => {
  const ways = [
    ['at temperature 1', { temperature: 1, topK: -1, topP: 1 }],
    ['at temperature 0.6', { temperature: 0.6, topK: -1, topP: 1 }],
    ['at temperature 1.8', { temperature: 1.8, topK: -1, topP: 1 }],
    ['among the 12 likeliest', { temperature: 1, topK: 12, topP: 1 }],
    ['among the likeliest 80 % at temperature 1.5', { temperature: 1.5, topK: -1, topP: 0.8 }],
    ['among both', { temperature: 1.3, topK: 30, topP: 0.9 }],
  ] as const;

  it.each(ways)('%s follow the distribution', async (_, way) => {
    await using test = await tinyEngine('llama-untied');
    const ids = prompt(4, 3);
    const expected = cut(await distribution(test.engine, ids, way.temperature), way);
    const counts = new Array<number>(300).fill(0);
    const n = 4000;
    const results = await Promise.all(
      [1, 2, 3, 4].map((seed) =>
        test.engine.sample(sampleRequest(ids, { ...way, seed, numSamples: n / 4, maxTokens: 1 })),
      ),
    );
    for (const { sequences } of results) for (const { tokens } of sequences) counts[tokens[0]!]! += 1;
    // Tokens expected less than five times are one class, as the test needs.
    let [chi, degrees, rareCount, rareExpected] = [0, -1, 0, 0];
    for (const [token, probability] of expected.entries()) {
      if (probability === 0) expect(counts[token], `token ${token} was cut away`).toBe(0);
      if (probability * n < 5) {
        rareCount += counts[token]!;
        rareExpected += probability * n;
        continue;
      }
      chi += (counts[token]! - probability * n) ** 2 / (probability * n);
      degrees++;
    }
    if (rareExpected >= 5) {
      chi += (rareCount - rareExpected) ** 2 / rareExpected;
      degrees++;
    } else expect(rareCount).toBeLessThan(30);
    expect(degrees).toBeGreaterThan(3);
    // Fixed seeds, so this cannot fail by chance; four deviations is one in ten thousand for a right sampler.
    expect(chi).toBeLessThan(degrees + 4 * Math.sqrt(2 * degrees));
  });

  it('of samples, seeds and positions differ, and come again with the same seed', async () => {
    await using test = await tinyEngine('llama-tied');
    const request = sampleRequest(prompt(6), { numSamples: 20, maxTokens: 12, temperature: 1.5 });
    const result = await test.engine.sample(request);
    expectSameResult(await test.engine.sample(request), result);
    const texts = (r: SampleResult) => r.sequences.map(({ tokens }) => tokens.join());
    expect(new Set(texts(result)).size).toBe(20);
    const other = await test.engine.sample({ ...request, params: { ...request.params, seed: 1 + 2 ** 32 } });
    expect(texts(other).filter((text) => texts(result).includes(text))).toEqual([]);
    // The first samples of a larger request are those of a smaller one.
    const fewer = await test.engine.sample({ ...request, numSamples: 3 });
    expect(texts(fewer)).toEqual(texts(result).slice(0, 3));
  });
});

describe('many rows', () => {
  it('of one request are sampled in turns when they do not fit, to the same bits', async () => {
    await using test = await tinyEngine('llama-tied');
    await using narrow = await tinyEngine('llama-tied', { maxRows: 7 });
    // Room for five rows of the cache.
    await using small = await tinyEngine('llama-tied', { maxCacheBytes: 5 * 4 * 2 * 2 * 2 * 16 * 24 });
    const request = sampleRequest(prompt(12), { numSamples: 40, maxTokens: 12 });
    const wide = await test.engine.sample(request);
    expectSameResult(await narrow.engine.sample(request), wide);
    expectSameResult(await small.engine.sample(request), wide);
  });

  it('up to a thousand come back in order, with their own draws', async () => {
    await using test = await tinyEngine('llama-tied');
    const request = sampleRequest(prompt(9), { numSamples: 1000, maxTokens: 4, temperature: 1.2 });
    const { sequences, prefillTokens } = await test.engine.sample(request);
    expect(sequences).toHaveLength(1000);
    expect(prefillTokens).toBe(9);
    const few = await test.engine.sample({ ...request, numSamples: 10 });
    expect(few.sequences.map(({ tokens }) => [...tokens])).toEqual(
      sequences.slice(0, 10).map(({ tokens }) => [...tokens]),
    );
  });
});

describe('a cancelled request', () => {
  it('is rejected with the reason, while others go on to the same bits', async () => {
    await using test = await tinyEngine('llama-tied', { maxRows: 8 });
    const other = sampleRequest(prompt(10), { numSamples: 4, maxTokens: 60 });
    const alone = await test.engine.sample(other);
    const controller = new AbortController();
    const long = sampleRequest(prompt(3), { numSamples: 100, maxTokens: 500, temperature: 0.7 });
    const cancelled = rejection(test.engine.sample(long, { signal: controller.signal }));
    const going = test.engine.sample(other);
    const behind = test.engine.sample({ ...other, params: { ...other.params, seed: 2 } });
    setImmediate(() => controller.abort(new Error('enough')));
    expect(await cancelled).toMatchObject({ message: 'enough' });
    expectSameResult(await going, alone);
    expect((await behind).sequences).toHaveLength(4);
  });

  it('before it starts is refused, and a signal is let go of when its request is done', async () => {
    await using test = await tinyEngine('llama-tied');
    const aborted = AbortSignal.abort(new Error('never'));
    const request = sampleRequest(prompt(3));
    expect(await rejection(test.engine.sample(request, { signal: aborted }))).toMatchObject({ message: 'never' });
    const { signal } = new AbortController();
    let listeners = 0;
    const counting = new Proxy(signal, {
      get: (target, name) => {
        if (name === 'addEventListener') listeners++;
        if (name === 'removeEventListener') listeners--;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    await test.engine.sample(request, { signal: counting });
    expect(listeners).toBe(0);
  });

  it('while its weights are still being read does not start', async () => {
    await using test = await tinyEngine('llama-tied');
    const controller = new AbortController();
    const request = sampleRequest(prompt(3), { weights: adapted, numSamples: 50, maxTokens: 400 });
    const sampling = rejection(test.engine.sample(request, { signal: controller.signal }));
    controller.abort(new Error('too late'));
    expect(await sampling).toMatchObject({ message: 'too late' });
  });
});

describe('a prompt that cannot be sampled from is refused', () => {
  it.each([
    ['an empty one', [], 'prompt'],
    ['one with an id outside the vocabulary', [1, 300], 'prompt[1]'],
    ['one with a negative id', [-1], 'prompt[0]'],
  ])('%s', async (_, ids, field) => {
    await using test = await tinyEngine('llama-tied');
    const request = sampleRequest(ids);
    expect(await rejection(test.engine.sample(request))).toMatchObject({
      code: 'invalid_argument',
      details: { field },
    });
    const scoring = test.engine.computeLogprobs({ prompt: request.prompt, weights: base });
    expect(await rejection(scoring)).toMatchObject({ code: 'invalid_argument', details: { field } });
  });

  it('and so are stop ids outside the vocabulary', async () => {
    await using test = await tinyEngine('llama-tied');
    const error = await rejection(test.engine.sample(sampleRequest([1], { stopTokenIds: [5, 300] })));
    expect(error).toMatchObject({ code: 'invalid_argument', details: { field: 'samplingParams.stopTokenIds[1]' } });
  });
});
