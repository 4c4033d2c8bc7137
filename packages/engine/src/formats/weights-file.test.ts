import { cp, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  expectSameBits,
  readFixtureJson,
  rejection,
  temporaryDirectory,
  tinyModelDirectory,
  tinyModels,
} from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { parseModelConfig } from '../local/models/config.js';
import { ModelDirectory } from './model-directory.js';
import { readSafetensors } from './safetensors.js';
import { cacheWeightsFile, layoutWeights, readWeights, writeWeightsFile } from './weights-file.js';

const diskFull = async () => {
  throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
};

describe('layoutWeights', () => {
  it('puts q, k, v and gate, up back to back and starts everything else on a page', () => {
    const { tensors, sizeBytes } = layoutWeights(parseModelConfig(readFixtureJson('tiny/qwen2/config.json')));
    const offset = (name: string) => tensors.get(name)!.offset;
    const at = 'model.layers.1.self_attn';
    expect(offset(`${at}.k_proj.weight`) - offset(`${at}.q_proj.weight`)).toBe(4 * 64 * 64);
    expect(offset(`${at}.v_proj.weight`) - offset(`${at}.k_proj.weight`)).toBe(4 * 32 * 64);
    expect(offset(`${at}.v_proj.bias`) - offset(`${at}.q_proj.bias`)).toBe(4 * (64 + 32));
    expect(tensors.get('layers.1.qkv')).toEqual({ offset: offset(`${at}.q_proj.weight`), shape: [128, 64] });
    expect(tensors.get('layers.1.qkv.bias')).toEqual({ offset: offset(`${at}.q_proj.bias`), shape: [128] });
    expect(tensors.get('layers.0.gate_up')).toEqual({
      offset: offset('model.layers.0.mlp.gate_proj.weight'),
      shape: [256, 64],
    });
    for (const [name, entry] of tensors) {
      if (!/(k_proj|v_proj|up_proj)\./.test(name)) expect(entry.offset % 4096, name).toBe(0);
    }
    expect(sizeBytes).toBe(offset('model.norm.weight') + 4 * 64);
  });
});

describe('cacheWeightsFile', () => {
  it.each(tinyModels)('holds the values of %s under every name, fused ones as their members in a row', async (name) => {
    await using cache = await temporaryDirectory();
    await using model = await ModelDirectory.open(tinyModelDirectory(name));
    const file = await cacheWeightsFile(model, { cacheDirectory: cache.path });
    expect((await stat(file.path)).size).toBe(file.sizeBytes);
    const weights = await readWeights(file);
    const source = await readSafetensors(join(tinyModelDirectory(name), 'model.safetensors'));
    for (const [tensor, { data }] of source) expectSameBits(weights.get(tensor)!, data, tensor);
    const fused = ['q_proj', 'k_proj', 'v_proj'].flatMap((part) => [
      ...source.get(`model.layers.1.self_attn.${part}.weight`)!.data,
    ]);
    expectSameBits(weights.get('layers.1.qkv')!, Float32Array.from(fused));
    expect(new Set([...weights.values()].map(({ buffer }) => buffer)).size).toBe(1);
  });

  it('uses the cached file again, and writes another one when the model has changed', async () => {
    await using directory = await temporaryDirectory();
    await cp(tinyModelDirectory('llama-tied'), directory.path, { recursive: true });
    const cacheDirectory = join(directory.path, 'cache', 'deep');
    const load = async () => {
      await using model = await ModelDirectory.open(directory.path);
      return await cacheWeightsFile(model, { cacheDirectory });
    };
    const first = await load();
    const { mtimeMs, ino } = await stat(first.path);
    expect((await load()).path).toBe(first.path);
    expect(await stat(first.path)).toMatchObject({ mtimeMs, ino });
    await utimes(join(directory.path, 'model.safetensors'), 1, 1);
    const second = await load();
    expect(second.path).not.toBe(first.path);
    expectSameBits(await readFile(second.path), await readFile(first.path));
  });

  it('writes anew over a file of the right name and the wrong size', async () => {
    await using cache = await temporaryDirectory();
    await using model = await ModelDirectory.open(tinyModelDirectory('llama-tied'));
    const file = await cacheWeightsFile(model, { cacheDirectory: cache.path });
    const whole = await readFile(file.path);
    await writeFile(file.path, 'half');
    await cacheWeightsFile(model, { cacheDirectory: cache.path });
    expectSameBits(await readFile(file.path), whole);
  });

  it('serves writers that start together', async () => {
    await using cache = await temporaryDirectory();
    await using model = await ModelDirectory.open(tinyModelDirectory('llama-tied'));
    const files = await Promise.all([1, 2, 3].map(() => cacheWeightsFile(model, { cacheDirectory: cache.path })));
    expect(new Set(files.map(({ path }) => path)).size).toBe(1);
    expect(await readdir(cache.path)).toHaveLength(1);
    const source = await readSafetensors(join(tinyModelDirectory('llama-tied'), 'model.safetensors'));
    expect((await readWeights(files[0]!)).get('model.norm.weight')).toEqual(source.get('model.norm.weight')!.data);
  });

  it('leaves nothing behind on a full disk, and says so before any work when it can be known', async () => {
    await using cache = await temporaryDirectory();
    await using model = await ModelDirectory.open(tinyModelDirectory('llama-tied'));
    let calls = 0;
    const writeBytes = async () => {
      if (++calls === 5) await diskFull();
    };
    const error = await rejection(cacheWeightsFile(model, { cacheDirectory: cache.path, writeBytes }));
    expect(error).toMatchObject({ code: 'disk_full' });
    expect(await readdir(cache.path)).toEqual([]);

    calls = 0;
    const freeBytes = async () => 1000;
    const early = await rejection(cacheWeightsFile(model, { cacheDirectory: cache.path, writeBytes, freeBytes }));
    expect(early).toMatchObject({ code: 'disk_full', details: { got: '1000' } });
    expect(calls).toBe(0);
  });

  it('removes what a killed writer left an hour ago and not what one is still writing', async () => {
    await using cache = await temporaryDirectory();
    await using model = await ModelDirectory.open(tinyModelDirectory('llama-tied'));
    const left = join(cache.path, 'weights-00.bin.1-aa.tmp');
    await writeFile(left, 'half');
    await utimes(left, 1, 1);
    await writeFile(join(cache.path, 'weights-00.bin.1-bb.tmp'), 'half');
    const { path } = await cacheWeightsFile(model, { cacheDirectory: cache.path });
    expect((await readdir(cache.path)).sort().map((name) => join(cache.path, name))).toEqual(
      [path, join(cache.path, 'weights-00.bin.1-bb.tmp')].sort(),
    );
  });

  it('stops when cancelled, leaving nothing', async () => {
    await using cache = await temporaryDirectory();
    await using model = await ModelDirectory.open(tinyModelDirectory('llama-tied'));
    const abort = new AbortController();
    const stopped = cacheWeightsFile(model, {
      cacheDirectory: cache.path,
      signal: abort.signal,
      writeBytes: async () => abort.abort(),
    });
    expect(await rejection(stopped)).toMatchObject({ code: 'cancelled' });
    expect(await readdir(cache.path)).toEqual([]);
  });
});

describe('writeWeightsFile', () => {
  it('writes what readWeights gave, byte for byte, and refuses a missing tensor or a wrong length', async () => {
    await using directory = await temporaryDirectory();
    await using model = await ModelDirectory.open(tinyModelDirectory('qwen3'));
    const file = await cacheWeightsFile(model, { cacheDirectory: directory.path });
    const weights = await readWeights(file);
    const path = join(directory.path, 'again.bin');
    const again = await writeWeightsFile(weights, { path, config: model.config });
    expect(again.tensors).toEqual(file.tensors);
    expectSameBits(await readFile(path), await readFile(file.path));

    weights.set('model.norm.weight', new Float32Array(63));
    const wrong = await rejection(writeWeightsFile(weights, { path, config: model.config }));
    expect(wrong).toMatchObject({ code: 'invalid_argument', details: { field: 'model.norm.weight', got: '63' } });
    weights.delete('model.norm.weight');
    expect(await rejection(writeWeightsFile(weights, { path, config: model.config }))).toMatchObject({
      code: 'invalid_argument',
    });
  });

  it('refuses to read a file that is gone or cut', async () => {
    await using directory = await temporaryDirectory();
    await using model = await ModelDirectory.open(tinyModelDirectory('qwen3'));
    const file = await cacheWeightsFile(model, { cacheDirectory: directory.path });
    await writeFile(file.path, new Uint8Array(100));
    expect(await rejection(readWeights(file))).toMatchObject({ code: 'model_invalid' });
    expect(await rejection(readWeights({ ...file, path: join(directory.path, 'none') }))).toMatchObject({
      code: 'model_invalid',
    });
  });
});
