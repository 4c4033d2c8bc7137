import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { expectClose, norm } from './compare.js';
import {
  type FullExpected,
  fixturePath,
  type LoraExpected,
  loraAdapters,
  readFixtureJson,
  readFixtureTensors,
} from './fixtures.js';
import { tolerances } from './tolerances.js';

/** The others have log-probs only. */
const withGradients = loraAdapters.filter((adapter) => !/qv-r4|rslora/.test(adapter));

describe('fixtures', () => {
  it.each(withGradients)('hold gradients of %s whose norm is the stored one', async (adapter) => {
    const { losses = {} } = readFixtureJson<LoraExpected>(`lora/${adapter}/expected.json`);
    const files = readdirSync(fixturePath(`lora/${adapter}/grads`));
    expect(files).toContain('cross_entropy.safetensors');
    for (const file of files) {
      const gradients = await readFixtureTensors(`lora/${adapter}/grads/${file}`);
      const total = norm([...gradients.values()].map(({ data }) => norm(data)));
      const stored = losses[file.replace('.safetensors', '')]!.grad_norm;
      expectClose(total, stored, tolerances.gradientNorm, { label: `${adapter} ${file}` });
    }
  });

  it.each(['llama-tied', 'llama-untied', 'qwen2', 'qwen3', 'mistral', 'gemma3', 'granite'])(
    'hold whole-model gradients of %s with their norms',
    async (model) => {
      const { grad_norm_per_tensor: norms } = readFixtureJson<FullExpected>(`full/${model}.json`);
      const gradients = await readFixtureTensors(`full/${model}.grads.safetensors`);
      expect(gradients.size).toBeGreaterThan(10);
      for (const { name, data } of gradients.values()) {
        expectClose(norm(data), norms[name]!, tolerances.gradientNorm, { label: name });
      }
    },
  );

  it('add up over datums to the gradient of one call', async () => {
    const parts = await Promise.all(
      [0, 1, 2].map((i) => readFixtureTensors(`accumulation/cross_entropy.datum${i}.safetensors`)),
    );
    const whole = await readFixtureTensors('lora/llama-tied/grads/cross_entropy.safetensors');
    for (const { name, data } of whole.values()) {
      const sum = data.map((_, i) => parts.reduce((total, part) => total + part.get(name)!.data[i]!, 0));
      expectClose(sum, data, tolerances.accumulation, { label: name });
    }
  });
});
