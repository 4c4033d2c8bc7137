import { copyFile, mkdir } from 'node:fs/promises';
import path from 'node:path';
import {
  expectClose,
  expectSameBits,
  type LoraExpected,
  loraAdapterDirectory,
  loraAdapters,
  readFixtureJson,
  type TinyExpected,
  type TinyModel,
  temporaryDirectory,
  tinyModelDirectory,
  tinyModels,
  tolerances,
} from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { readAdapter } from '../formats/adapter.js';
import { adam, base, crossEntropy, datum, sampleRequest, tinyEngine } from './testing/tiny-engine.js';

describe.each(tinyModels)('%s', (model) => {
  const { sequences } = readFixtureJson<TinyExpected>(`tiny/${model}/expected.json`);

  it('gives the log-probs and the greedy tokens of the reference', async () => {
    await using test = await tinyEngine(model);
    for (const { input_ids, logprobs, greedy_16 } of sequences) {
      const prompt = Int32Array.from(input_ids);
      const scored = await test.engine.computeLogprobs({ prompt, weights: base });
      expect(scored.prefillTokens).toBe(prompt.length);
      expect(scored.logprobs[0]).toBeNaN();
      expectClose(scored.logprobs.subarray(1), logprobs, tolerances.tinyLogprobs);
      // The reference goes on after an end of sequence; sampling stops there.
      const end = greedy_16.indexOf(2);
      const { sequences: sampled } = await test.engine.sample(sampleRequest(prompt, { temperature: 0, maxTokens: 16 }));
      expect([...sampled[0]!.tokens]).toEqual(end < 0 ? greedy_16 : greedy_16.slice(0, end + 1));
    }
  });

  it('reads the config as transformers 5 spells it, to the same bits', async () => {
    await using copy = await temporaryDirectory();
    const directory = path.join(copy.path, 'model');
    await mkdir(directory);
    const original = tinyModelDirectory(model);
    await copyFile(path.join(original, 'config.transformers5.json'), path.join(directory, 'config.json'));
    await copyFile(path.join(original, 'model.safetensors'), path.join(directory, 'model.safetensors'));
    await using other = await tinyEngine(model, { directory });
    await using test = await tinyEngine(model);
    const prompt = Int32Array.from(sequences[2]!.input_ids);
    const [a, b] = [
      await test.engine.computeLogprobs({ prompt, weights: base }),
      await other.engine.computeLogprobs({ prompt, weights: base }),
    ];
    expectSameBits(b.logprobs, a.logprobs);
  });
});

describe.each(loraAdapters)('adapter %s', (adapter) => {
  const expected = readFixtureJson<LoraExpected>(`lora/${adapter}/expected.json`);
  const model = expected.base_model.replace(/^.*\//, '') as TinyModel; // true: adapters are made on these
  const directory = loraAdapterDirectory(adapter);
  const weights = { type: 'version', id: 'v', directory } as const;

  it('gives the log-probs of the reference when sampled from, and leaves the base as it is', async () => {
    await using test = await tinyEngine(model);
    for (const { input_ids, logprobs, base_logprobs } of expected.sequences) {
      const prompt = Int32Array.from(input_ids);
      const adapted = await test.engine.computeLogprobs({ prompt, weights });
      expectClose(adapted.logprobs.subarray(1), logprobs, tolerances.tinyLogprobs);
      const plain = await test.engine.computeLogprobs({ prompt, weights: base });
      expectClose(plain.logprobs.subarray(1), base_logprobs, tolerances.tinyLogprobs);
      const { promptLogprobs } = await test.engine.sample(sampleRequest(prompt, { weights, promptLogprobs: true }));
      expectSameBits(promptLogprobs!, adapted.logprobs);
    }
  });

  it('is loaded into a session that has not trained, whatever its rank, scale and modules', async () => {
    await using test = await tinyEngine(model);
    const training = { type: 'lora', rank: 2, alpha: 5, targetModules: ['o_proj'] } as const;
    await test.engine.createSession({ name: 's', baseModel: model, training, seed: 0 });
    await test.engine.loadState('s', { directory, loadOptimizer: false });
    for (const { input_ids, logprobs } of expected.sequences) {
      const ids = Int32Array.from(input_ids);
      const data = [
        {
          modelInput: ids.slice(0, -1),
          targetTokens: { dtype: 'int32', shape: [ids.length - 1], data: ids.slice(1) } as const,
        },
      ];
      const result = await test.engine.pass('s', { type: 'forward', data, loss: crossEntropy });
      expectClose(result.outputs[0]!.logprobs, logprobs, tolerances.tinyLogprobs);
    }
    // What is saved again is the same adapter, at the same scale.
    const again = test.folder();
    await test.engine.saveWeights('s', { version: 'again', directory: again, merge: false });
    const [written, read] = [await readAdapter(again), await readAdapter(directory)];
    expect(written.scale).toBeCloseTo(read.scale, 12);
    for (const [key, { A, B }] of read.tensors) {
      expectSameBits(written.tensors.get(key)!.A, A, key);
      expectSameBits(written.tensors.get(key)!.B, B, key);
    }
    // It trains on from there.
    await test.engine.pass('s', { type: 'forward-backward', data: [datum(12)], loss: crossEntropy });
    expect((await test.engine.optimStep('s', adam)).gradNorm).toBeGreaterThan(0);
  });
});
