import { type Datum, floatTensor, idTensor } from '@loopwright/protocol';
import { expectClose, tolerances } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { executionPlan } from '../plan.js';
import { tinyBase } from '../testing/tiny-base.js';
import { crossEntropy, prompt } from '../testing/tiny-engine.js';
import { adapterSession, forwardBackward } from '../testing/training.js';

const data = [31, 18, 44].map((length, salt): Datum => {
  const ids = prompt(length + 1, salt);
  return {
    modelInput: ids.slice(0, -1),
    targetTokens: idTensor(ids.slice(1)),
    weights: floatTensor(new Float32Array(length).fill(1)),
  };
});

describe('weights that are packed into the training program', () => {
  it.each(['llama-tied', 'qwen2', 'qwen3'] as const)('give %s the numbers that fed ones give', async (name) => {
    await using model = await tinyBase(name);
    const run = async (packWeights: boolean) => {
      const session = await adapterSession(model.base, name, { packWeights });
      const { outputs } = await forwardBackward(session, data, crossEntropy);
      return { outputs, gradient: session.gradient! };
    };
    const [fed, packed] = [await run(false), await run(true)];
    fed.outputs.forEach(({ logprobs }, i) => {
      expectClose(packed.outputs[i]!.logprobs, logprobs, tolerances.tinyLogprobs, { label: `datum ${i}` });
    });
    expect(fed.gradient.size).toBeGreaterThan(0);
    for (const [key, values] of fed.gradient)
      expectClose(packed.gradient.get(key)!, values, tolerances.gradient, { label: key });
  });

  it('are those of adapters on every layer alone, and not of whom says no', async () => {
    await using model = await tinyBase('llama-tied');
    const { config } = model.base;
    const lora = { type: 'lora', rank: 8, alpha: 16 } as const;
    const all = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'] as const;
    const packs = (...args: Parameters<typeof executionPlan>) => executionPlan(...args).packWeights;
    expect(packs(config, {}, { ...lora, targetModules: all })).toBe(true);
    expect(packs(config, { packWeights: false }, { ...lora, targetModules: all })).toBe(false);
    expect(packs(config, {}, { ...lora, targetModules: ['q_proj', 'v_proj'] })).toBe(false);
    expect(packs(config, {}, { ...lora, targetModules: [...all, 'lm_head'] })).toBe(false);
    expect(packs(config, {}, { type: 'full' })).toBe(false);
  });
});
