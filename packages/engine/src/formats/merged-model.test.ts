import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  expectSameBits,
  loraAdapterDirectory,
  rejection,
  temporaryDirectory,
  tinyModelDirectory,
} from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { readAdapter } from './adapter.js';
import { mergeAdapter, writeFullModel, writeModelDirectory } from './merged-model.js';
import { ModelDirectory } from './model-directory.js';

/** W + scale · B·A, entry by entry in float64. */
function merged(
  weight: Float32Array,
  pair: { A: Float32Array; B: Float32Array; inFeatures: number; outFeatures: number },
  scale: number,
) {
  const rank = pair.A.length / pair.inFeatures;
  return weight.map((value, at) => {
    const [out, i] = [Math.floor(at / pair.inFeatures), at % pair.inFeatures];
    let sum = 0;
    for (let k = 0; k < rank; k++) sum += pair.B[out * rank + k]! * pair.A[k * pair.inFeatures + i]!;
    return value + scale * sum;
  });
}

function largestDifference(a: Float32Array, b: Float32Array): number {
  return a.reduce((max, value, i) => Math.max(max, Math.abs(value - b[i]!)), 0);
}

describe('a merged model', () => {
  it('adds the adapter to the layers it is on, and copies the others bit for bit', async () => {
    await using directory = await temporaryDirectory();
    await using base = await ModelDirectory.open(tinyModelDirectory('llama-tied'));
    const adapter = await readAdapter(loraAdapterDirectory('llama-tied-qv-r4'));
    const files = await writeModelDirectory(directory.path, mergeAdapter(base, adapter));
    expect([...files].sort()).toEqual((await readdir(directory.path)).sort());
    await using written = await ModelDirectory.open(directory.path);
    expect(written.config).toEqual(base.config);
    for (const { name, layer, module } of base.specs) {
      const pair = adapter.tensors.get(`layers.${layer}.${module}`);
      const [before, after] = [await base.read(name), await written.read(name)];
      if (pair === undefined) expectSameBits(after, before, name);
      else {
        expect(largestDifference(after, merged(before, pair, 8))).toBeLessThan(1e-6);
        expect(largestDifference(after, before)).toBeGreaterThan(0.01);
      }
    }
  });

  it('unties the head of a model with tied embeddings when the adapter is on it, and leaves the embedding', async () => {
    await using directory = await temporaryDirectory();
    await using base = await ModelDirectory.open(tinyModelDirectory('llama-tied'));
    const adapter = await readAdapter(loraAdapterDirectory('llama-tied-lm-head'));
    await writeModelDirectory(directory.path, mergeAdapter(base, adapter));
    await using written = await ModelDirectory.open(directory.path);
    expect(written.config.tiedEmbeddings).toBe(false);
    const embedding = await base.read('model.embed_tokens.weight');
    expectSameBits(await written.read('model.embed_tokens.weight'), embedding);
    const expected = merged(embedding, adapter.tensors.get('lm_head')!, adapter.scale);
    expect(largestDifference(await written.read('lm_head.weight'), expected)).toBeLessThan(1e-6);
  });

  it('splits into shards with an index that reads back as the same model', async () => {
    await using whole = await temporaryDirectory();
    await using parts = await temporaryDirectory();
    await using base = await ModelDirectory.open(tinyModelDirectory('qwen2'));
    const adapter = await readAdapter(loraAdapterDirectory('qwen2'));
    await writeModelDirectory(whole.path, mergeAdapter(base, adapter));
    const files = await writeModelDirectory(parts.path, mergeAdapter(base, adapter), { maxShardBytes: 100_000 });
    const shards = files.filter((name) => name.endsWith('.safetensors'));
    expect(shards.length).toBeGreaterThan(3);
    for (const [i, name] of shards.entries()) {
      expect(name).toBe(`model-0000${i + 1}-of-0000${shards.length}.safetensors`);
      expect((await stat(join(parts.path, name))).size).toBeLessThan(100_000 + 4096);
    }
    expect(files).toContain('model.safetensors.index.json');
    await using a = await ModelDirectory.open(whole.path);
    await using b = await ModelDirectory.open(parts.path);
    for (const { name } of a.specs) expectSameBits(await b.read(name), await a.read(name), name);
  });

  it('refuses an adapter of another model', async () => {
    await using base = await ModelDirectory.open(tinyModelDirectory('llama-untied'));
    const adapter = await readAdapter(loraAdapterDirectory('llama-tied'));
    expect(() => mergeAdapter(base, adapter)).toThrow(
      expect.objectContaining({
        code: 'checkpoint_mismatch',
        details: expect.objectContaining({ field: 'layers.2.q_proj' }),
      }),
    );
  });

  it('reports a full disk', async () => {
    await using directory = await temporaryDirectory();
    await using base = await ModelDirectory.open(tinyModelDirectory('qwen2'));
    const adapter = await readAdapter(loraAdapterDirectory('qwen2'));
    const full = writeModelDirectory(directory.path, mergeAdapter(base, adapter), { freeBytes: async () => 10 });
    expect(await rejection(full)).toMatchObject({ code: 'disk_full' });
    expect(await readdir(directory.path)).toEqual([]);
  });
});

describe('writeFullModel', () => {
  it('writes given weights with the config in float32 and the companion files of the base', async () => {
    await using source = await temporaryDirectory();
    await using directory = await temporaryDirectory();
    await using tiny = await ModelDirectory.open(tinyModelDirectory('qwen3'));
    const weights = new Map<string, Float32Array>();
    for (const { name } of tiny.specs)
      weights.set(
        name,
        (await tiny.read(name)).map((value) => value / 2),
      );
    await writeFullModel(source.path, { base: tiny, weights });
    const config = { ...tiny.rawConfig, torch_dtype: 'bfloat16' };
    await writeFile(join(source.path, 'config.json'), JSON.stringify(config));
    await writeFile(join(source.path, 'tokenizer.json'), '{"a": 1}');

    await using base = await ModelDirectory.open(source.path);
    const files = await writeFullModel(directory.path, { base, weights });
    expect(files).toEqual(['model.safetensors', 'tokenizer.json', 'config.json']);
    expect(await readFile(join(directory.path, 'tokenizer.json'), 'utf8')).toBe('{"a": 1}');
    await using written = await ModelDirectory.open(directory.path);
    expect(written.rawConfig).toEqual({ ...tiny.rawConfig, torch_dtype: 'float32' });
    for (const [name, values] of weights) expectSameBits(await written.read(name), values, name);

    weights.delete('model.norm.weight');
    expect(await rejection(writeFullModel(directory.path, { base, weights }))).toMatchObject({
      code: 'invalid_argument',
      details: { field: 'model.norm.weight' },
    });
  });

  it('says float32 under the name that transformers 5 uses', async () => {
    await using source = await temporaryDirectory();
    await using directory = await temporaryDirectory();
    await using tiny = await ModelDirectory.open(tinyModelDirectory('qwen3'));
    const weights = new Map<string, Float32Array>();
    for (const { name } of tiny.specs) weights.set(name, await tiny.read(name));
    await writeFullModel(source.path, { base: tiny, weights });
    const { torch_dtype: _, ...rest } = tiny.rawConfig;
    await writeFile(join(source.path, 'config.json'), JSON.stringify({ ...rest, dtype: 'float16' }));
    await using base = await ModelDirectory.open(source.path);
    await writeFullModel(directory.path, { base, weights });
    await using written = await ModelDirectory.open(directory.path);
    expect(written.rawConfig).toEqual({ ...rest, dtype: 'float32' });
  });
});
