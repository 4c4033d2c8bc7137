import { open, readdir, stat, truncate } from 'node:fs/promises';
import { dirname } from 'node:path';
import { rejection, temporaryDirectory, tinyModelDirectory } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { cacheInt8Weights, int8WeightNames, roundToInt8 } from './int8-weights-file.js';
import { ModelDirectory } from './model-directory.js';
import { cacheWeightsFile, readWeights } from './weights-file.js';

describe('rounding', () => {
  it('brings the largest magnitude of each output to 127, halves to even, and transposes', () => {
    const { values, scales } = roundToInt8(Float32Array.of(127, 0.5, 1.5, -2.5, 0, 0, 0, 0, -254, 254, 3, 5), 3);
    expect([...scales]).toEqual([1, 0, 2]);
    expect([...values]).toEqual([127, 0, -127, 0, 0, 127, 2, 0, 2, -2, 0, 2]);
  });

  it('keeps numbers of the smallest magnitudes within its range', () => {
    const { values } = roundToInt8(Float32Array.of(180 * 2 ** -149, -(180 * 2 ** -149)), 1);
    expect([...values]).toEqual([127, -127]);
  });
});

describe('the file of rounded weights', () => {
  it.each(['llama-tied', 'llama-untied', 'qwen3'] as const)(
    'of %s holds every factor within half a step, beside the weights it was made from',
    async (name) => {
      await using cache = await temporaryDirectory();
      await using model = await ModelDirectory.open(tinyModelDirectory(name));
      const { config } = model;
      const file = await cacheWeightsFile(model, { cacheDirectory: cache.path });
      const weights = await readWeights(file);
      const int8 = await cacheInt8Weights(file, { config, weights });
      expect(dirname(int8.path)).toBe(dirname(file.path));
      expect((await stat(int8.path)).size).toBe(int8.sizeBytes);
      expect([...int8.tensors.keys()]).toEqual(int8WeightNames(config));
      expect(int8.tensors.size).toBe(4 * config.layers + 1);
      const handle = await open(int8.path);
      try {
        for (const [tensor, { values, scales }] of int8.tensors) {
          const [inner, out] = values.shape as readonly [number, number]; // true: factors have two axes
          const q = new Int8Array(inner * out);
          const s = new Float32Array(out);
          await handle.read(q, 0, q.byteLength, values.offset);
          await handle.read(new Uint8Array(s.buffer), 0, s.byteLength, scales.offset);
          const errors = weights.get(tensor)!.map((weight, i) => {
            const [n, k] = [Math.floor(i / inner), i % inner];
            return Math.abs(weight - q[k * out + n]! * s[n]!) / s[n]!;
          });
          expect(errors.reduce((a, b) => Math.max(a, b), 0)).toBeLessThan(0.5001);
        }
      } finally {
        await handle.close();
      }
    },
  );

  it('is taken again when it is whole, made anew when it is not, and left out when it is cancelled', async () => {
    await using cache = await temporaryDirectory();
    await using model = await ModelDirectory.open(tinyModelDirectory('llama-tied'));
    const { config } = model;
    const file = await cacheWeightsFile(model, { cacheDirectory: cache.path });
    const weights = await readWeights(file);
    const signal = AbortSignal.abort();
    expect(await rejection(cacheInt8Weights(file, { config, weights, signal }))).toMatchObject({ code: 'cancelled' });
    expect(await readdir(cache.path)).toHaveLength(1);
    const make = async () => (await stat((await cacheInt8Weights(file, { config, weights })).path)).ino;
    const first = await make();
    expect(await make()).toBe(first);
    const { path, sizeBytes } = await cacheInt8Weights(file, { config, weights });
    await truncate(path, sizeBytes - 1);
    await make();
    expect((await stat(path)).size).toBe(sizeBytes);
  });
});
