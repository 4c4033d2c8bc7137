import { join } from 'node:path';
import { readFixtureJson, tinyModelDirectory, tinyModels } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { SafetensorsFile } from '../../formats/safetensors.js';
import { parseModelConfig } from './config.js';
import { linearModules, weightSpecs } from './weight-names.js';

function config(model: string, change: Record<string, unknown> = {}) {
  return parseModelConfig({ ...readFixtureJson<Record<string, unknown>>(`tiny/${model}/config.json`), ...change });
}

describe('weightSpecs', () => {
  it.each(tinyModels)('lists the tensors of the file of %s, with their shapes', async (model) => {
    await using file = await SafetensorsFile.open(join(tinyModelDirectory(model), 'model.safetensors'));
    const inFile = [...file.tensors.values()].map(({ name, shape }) => [name, shape]).sort();
    const listed = weightSpecs(config(model)).map(({ name, shape }) => [name, shape]);
    expect([...listed].sort()).toEqual(inFile);
  });

  it('keeps q, k, v and gate, up together and in this order, biases apart', () => {
    const groups = new Map<string, string[]>();
    const specs = weightSpecs(config('qwen2'));
    for (const [i, { fused, module }] of specs.entries()) {
      if (fused === undefined) continue;
      const members = groups.get(fused) ?? [];
      if (members.length > 0) expect(specs[i - 1]?.fused).toBe(fused);
      groups.set(fused, [...members, module]);
    }
    expect(groups.get('layers.1.qkv')).toEqual(['q_proj', 'k_proj', 'v_proj']);
    expect(groups.get('layers.1.qkv.bias')).toEqual(['q_proj', 'k_proj', 'v_proj']);
    expect(groups.get('layers.0.gate_up')).toEqual(['gate_proj', 'up_proj']);
    expect(groups.size).toBe(6);
  });

  it('adds a bias to all four attention projections with attention_bias', () => {
    const biases = weightSpecs(config('llama-tied', { attention_bias: true, num_hidden_layers: 1 }))
      .filter(({ role }) => role === 'bias')
      .map(({ name, shape }) => [name, shape]);
    expect(biases).toEqual([
      ['model.layers.0.self_attn.q_proj.bias', [64]],
      ['model.layers.0.self_attn.k_proj.bias', [32]],
      ['model.layers.0.self_attn.v_proj.bias', [32]],
      ['model.layers.0.self_attn.o_proj.bias', [64]],
    ]);
  });
});

describe('linearModules', () => {
  it('names the adapted layers with their widths, lm_head last and there for tied models too', () => {
    const modules = linearModules(config('qwen3', { num_hidden_layers: 1 }), ['lm_head', 'q_proj', 'down_proj']);
    expect(modules).toEqual([
      {
        key: 'layers.0.q_proj',
        module: 'q_proj',
        layer: 0,
        path: 'model.layers.0.self_attn.q_proj',
        inFeatures: 64,
        outFeatures: 96,
      },
      {
        key: 'layers.0.down_proj',
        module: 'down_proj',
        layer: 0,
        path: 'model.layers.0.mlp.down_proj',
        inFeatures: 128,
        outFeatures: 64,
      },
      { key: 'lm_head', module: 'lm_head', path: 'lm_head', inFeatures: 64, outFeatures: 300 },
    ]);
  });
});
