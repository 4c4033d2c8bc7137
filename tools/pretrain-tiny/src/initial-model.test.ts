import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSafetensors } from '@loopwright/engine';
import { LocalEngine } from '@loopwright/engine/local';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeInitialModel } from './initial-model.js';
import { vocabulary } from './tokenizer-files.js';

describe('the model before it has learnt anything', () => {
  let folder: string;
  const write = async (name: string, seed: number) => {
    await writeInitialModel(join(folder, name), { seed });
    return readFile(join(folder, name, 'model.safetensors'));
  };
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'initial-model-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('is the same bytes for the same seed, and others for another', async () => {
    const [first, second, other] = [await write('a', 1), await write('b', 1), await write('c', 2)];
    expect(first.equals(second)).toBe(true);
    expect(first.equals(other)).toBe(false);
  });

  it('has small weights around 0 and norms of 1', async () => {
    await write('d', 3);
    for (const { name, data } of (await readSafetensors(join(folder, 'd', 'model.safetensors'))).values()) {
      const mean = data.reduce((sum, value) => sum + value, 0) / data.length;
      const deviation = Math.sqrt(data.reduce((sum, value) => sum + (value - mean) ** 2, 0) / data.length);
      if (name.includes('norm')) expect([mean, deviation]).toEqual([1, 0]);
      else {
        expect(Math.abs(mean)).toBeLessThan(0.002);
        // √6 smaller where the residual stream is written to
        expect(deviation).toBeCloseTo(/o_proj|down_proj/.test(name) ? 0.08 / Math.sqrt(6) : 0.08, 2);
      }
    }
  });

  it('is a model that the engine loads, with a logprob near uniform', async () => {
    await write('e', 4);
    expect((await readdir(join(folder, 'e'))).sort()).toEqual([
      'config.json',
      'generation_config.json',
      'model.safetensors',
      'tokenizer.json',
      'tokenizer_config.json',
    ]);
    await using engine = await LocalEngine.load(
      { id: 'initial', directory: join(folder, 'e') },
      { cacheDirectory: join(folder, 'cache'), threads: 1 },
    );
    expect(engine.model.contextLength).toBe(1024);
    const { logprobs } = await engine.computeLogprobs({
      prompt: Int32Array.from([10, 20, 30, 40, 50]),
      weights: { type: 'base' },
    });
    const mean = logprobs.slice(1).reduce((sum, value) => sum + value, 0) / 4;
    expect(Math.abs(mean + Math.log(vocabulary.length))).toBeLessThan(1.5);
  });
});
