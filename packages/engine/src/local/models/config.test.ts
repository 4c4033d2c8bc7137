import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LoopwrightError } from '@loopwright/protocol';
import { readFixtureJson, tinyModelDirectory, tinyModels } from '@loopwright/testkit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseModelConfig } from './config.js';

type Json = Record<string, unknown>;

function tiny(model: string, file = 'config.json'): Json {
  return readFixtureJson<Json>(`tiny/${model}/${file}`);
}

function refusal(json: unknown, generation?: unknown): LoopwrightError {
  try {
    parseModelConfig(json, generation);
  } catch (error) {
    if (LoopwrightError.isInstance(error)) return error;
    throw error;
  }
  throw new Error('expected a refusal');
}

describe('parseModelConfig', () => {
  it.each(tinyModels)('reads both spellings of %s alike', async (model) => {
    const text = await readFile(join(tinyModelDirectory(model), 'config.transformers5.json'), 'utf8');
    expect(parseModelConfig(JSON.parse(text))).toEqual(parseModelConfig(tiny(model)));
  });

  it('reads the sizes and constants of each architecture', () => {
    expect(parseModelConfig(tiny('llama-rope3'))).toEqual({
      architecture: 'llama',
      vocabSize: 300,
      hiddenSize: 64,
      intermediateSize: 128,
      layers: 2,
      heads: 4,
      kvHeads: 2,
      headDim: 16,
      rmsNormEps: 1e-5,
      ropeTheta: 500_000,
      ropeScaling: { type: 'llama3', factor: 8, lowFreqFactor: 1, highFreqFactor: 4, originalContext: 64 },
      contextLength: 512,
      tiedEmbeddings: true,
      qkvBias: false,
      attentionBias: false,
      qkNorm: false,
      hiddenAct: 'silu',
      normOffset: 0,
      postNorms: false,
      embeddingScale: 1,
      attentionScale: 0.25,
      residualScale: 1,
      logitScale: 1,
      slidingWindow: null,
      eosTokenIds: [2],
      bosTokenId: 1,
      dtype: 'float32',
    });
    expect(parseModelConfig(tiny('llama-untied'))).toMatchObject({
      layers: 3,
      tiedEmbeddings: false,
      ropeScaling: null,
    });
    expect(parseModelConfig(tiny('qwen2'))).toMatchObject({ qkvBias: true, attentionBias: false, qkNorm: false });
    expect(parseModelConfig(tiny('qwen3'))).toMatchObject({ headDim: 24, qkvBias: false, qkNorm: true });
  });

  it('takes biases on all four attention projections from attention_bias', () => {
    expect(parseModelConfig({ ...tiny('llama-tied'), attention_bias: true })).toMatchObject({
      qkvBias: true,
      attentionBias: true,
    });
    expect(parseModelConfig({ ...tiny('qwen3'), attention_bias: true })).toMatchObject({ attentionBias: true });
  });

  it('fills in what older configs leave out as transformers does', () => {
    const { head_dim, num_key_value_heads, rms_norm_eps, rope_theta, tie_word_embeddings, torch_dtype, ...rest } =
      tiny('llama-tied');
    expect([head_dim, num_key_value_heads, rms_norm_eps, rope_theta, tie_word_embeddings, torch_dtype]).toHaveLength(6);
    expect(parseModelConfig(rest)).toMatchObject({
      headDim: 16,
      kvHeads: 4,
      rmsNormEps: 1e-6,
      ropeTheta: 10_000,
      tiedEmbeddings: false,
      dtype: 'float32',
    });
    const { head_dim: _, ...qwen3 } = tiny('qwen3');
    expect(parseModelConfig(qwen3).headDim).toBe(128);
  });

  it('lists end tokens of the generation config first, each once', () => {
    const config = parseModelConfig({ ...tiny('llama-tied'), eos_token_id: [2, 9] }, { eos_token_id: [7, 2] });
    expect(config.eosTokenIds).toEqual([7, 2, 9]);
    expect(parseModelConfig({ ...tiny('llama-tied'), eos_token_id: null, bos_token_id: null })).toMatchObject({
      eosTokenIds: [],
      bosTokenId: null,
    });
  });

  it('reads the old spelling of the RoPE kind', () => {
    const scaling = { ...(tiny('llama-rope3').rope_scaling as Json), rope_type: undefined, type: 'llama3' };
    expect(parseModelConfig({ ...tiny('llama-rope3'), rope_scaling: scaling }).ropeScaling?.factor).toBe(8);
  });

  it.each<[string, string, Json]>([
    ['an architecture it has not', 'model_type', { model_type: 'gpt_oss' }],
    ['a model of text and images', 'model_type', { model_type: 'gemma3' }],
    ['a config without an architecture', 'model_type', { model_type: undefined }],
    ['a name that every object has', 'model_type', { model_type: 'constructor' }],
    ['a classifier', 'architectures', { architectures: ['LlamaForSequenceClassification'] }],
    ['another activation', 'hidden_act', { hidden_act: 'gelu' }],
    ['biases in the MLP', 'mlp_bias', { mlp_bias: true }],
    ['YaRN', 'rope_scaling.rope_type', { rope_scaling: { rope_type: 'yarn', factor: 4 } }],
    ['linear scaling, spelled the old way', 'rope_scaling.rope_type', { rope_scaling: { type: 'linear', factor: 2 } }],
    ['scaling in the new spelling', 'rope_parameters.rope_type', { rope_parameters: { rope_type: 'dynamic' } }],
    ['RoPE by kind of layer', 'rope_parameters', { rope_parameters: { full_attention: { rope_type: 'default' } } }],
    ['RoPE on a part of the head', 'partial_rotary_factor', { partial_rotary_factor: 0.5 }],
    ['quantized weights', 'quantization_config', { quantization_config: { quant_method: 'fp8' } }],
    ['scores that are capped', 'attn_logit_softcapping', { attn_logit_softcapping: 50 }],
    ['logits that are capped', 'final_logit_softcapping', { final_logit_softcapping: 30 }],
    ['attention both ways', 'use_bidirectional_attention', { use_bidirectional_attention: true }],
    ['sliding layers', 'layer_types', { layer_types: ['full_attention', 'sliding_attention'] }],
    ['an unknown dtype', 'torch_dtype', { torch_dtype: 'float8_e4m3fn' }],
  ])('refuses %s and lists what it runs', (_, field, change) => {
    const error = refusal({ ...tiny('llama-tied'), ...change });
    expect(error).toMatchObject({ code: 'unsupported_model', details: { field } });
    expect(error.message).toContain('llama, qwen2, qwen3, granite, mistral, gemma3_text');
  });

  it('reads what Granite multiplies by, which is 1 where its config does not say', () => {
    const { embedding_multiplier, attention_multiplier, residual_multiplier, logits_scaling, ...unsaid } =
      tiny('granite');
    expect([embedding_multiplier, attention_multiplier, residual_multiplier, logits_scaling]).toEqual([
      0.4, 0.25, 0.6, 2,
    ]);
    expect(parseModelConfig(tiny('granite'))).toMatchObject({
      embeddingScale: 0.4,
      attentionScale: 0.25,
      residualScale: 0.6,
      logitScale: 0.5,
    });
    expect(parseModelConfig(unsaid)).toMatchObject({
      embeddingScale: 1,
      attentionScale: 1,
      residualScale: 1,
      logitScale: 1,
    });
    expect(refusal({ ...tiny('granite'), logits_scaling: 0 })).toMatchObject({
      code: 'model_invalid',
      details: { field: 'config.json: logits_scaling' },
    });
  });

  it('reads which layers of Mistral and Gemma slide, how far, and their RoPE base', () => {
    expect(parseModelConfig(tiny('mistral')).slidingWindow).toEqual({
      tokens: 8,
      layers: [true, true],
      ropeTheta: 1_000_000,
    });
    expect(parseModelConfig({ ...tiny('mistral'), sliding_window: null }).slidingWindow).toBeNull();
    const { sliding_window, ...unsaid } = tiny('mistral');
    expect(sliding_window).toBe(8);
    expect(parseModelConfig(unsaid).slidingWindow?.tokens).toBe(4096);
    expect(parseModelConfig(tiny('gemma3'))).toMatchObject({
      hiddenAct: 'gelu_pytorch_tanh',
      normOffset: 1,
      postNorms: true,
      embeddingScale: 8,
      attentionScale: 20 ** -0.5,
      ropeTheta: 1_000_000,
      slidingWindow: { tokens: 8, layers: [true, true, false], ropeTheta: 10_000 },
    });
  });

  it('takes the layers of Gemma from the pattern where it has no list of them, and its defaults', () => {
    const { layer_types, tie_word_embeddings, hidden_activation, sliding_window_pattern, ...old } = tiny('gemma3');
    expect([layer_types, tie_word_embeddings, hidden_activation, sliding_window_pattern]).toHaveLength(4);
    const config = parseModelConfig({ ...old, num_hidden_layers: 7 });
    expect(config.slidingWindow?.layers).toEqual([true, true, true, true, true, false, true]);
    expect(config).toMatchObject({ tiedEmbeddings: true, hiddenAct: 'gelu_pytorch_tanh' });
    const all = parseModelConfig({ ...old, sliding_window_pattern: 1 });
    expect(all.slidingWindow).toBeNull();
  });

  it.each<[string, string, Json]>([
    ['another activation', 'hidden_activation', { hidden_activation: 'gelu' }],
    ['a kind of layer', 'layer_types', { layer_types: ['sliding_attention', 'chunked_attention', 'full_attention'] }],
    ['scaled RoPE', 'rope_scaling.rope_type', { rope_scaling: { rope_type: 'linear', factor: 8 } }],
    [
      'scaled RoPE in sliding layers',
      'rope_parameters',
      {
        rope_parameters: {
          full_attention: { rope_type: 'default', rope_theta: 1e6 },
          sliding_attention: {
            rope_type: 'llama3',
            rope_theta: 1e4,
            factor: 8,
            low_freq_factor: 1,
            high_freq_factor: 4,
            original_max_position_embeddings: 64,
          },
        },
      },
    ],
  ])('refuses a Gemma with %s', (_, field, change) => {
    expect(refusal({ ...tiny('gemma3'), ...change })).toMatchObject({ code: 'unsupported_model', details: { field } });
  });

  it('refuses a list of layers of another length', () => {
    const error = refusal({ ...tiny('gemma3'), layer_types: ['full_attention'] });
    expect(error).toMatchObject({ code: 'model_invalid', details: { field: 'config.json: layer_types' } });
  });

  it('refuses the sliding window of Qwen where it is switched on, and takes it where it is off', () => {
    expect(refusal({ ...tiny('qwen2'), use_sliding_window: true })).toMatchObject({ code: 'unsupported_model' });
    expect(parseModelConfig({ ...tiny('qwen2'), use_sliding_window: false }).architecture).toBe('qwen2');
  });

  it.each<[string, Json]>([
    ['hidden_size', { hidden_size: undefined }],
    ['hidden_size', { hidden_size: '64' }],
    ['num_hidden_layers', { num_hidden_layers: 0 }],
    ['num_hidden_layers', { num_hidden_layers: 1e9 }],
    ['vocab_size', { vocab_size: 300.5 }],
    ['num_key_value_heads', { num_key_value_heads: 3 }],
    ['head_dim', { head_dim: 15 }],
    ['rms_norm_eps', { rms_norm_eps: -1 }],
    ['rope_theta', { rope_theta: 0 }],
    ['eos_token_id', { eos_token_id: 300 }],
    ['tie_word_embeddings', { tie_word_embeddings: 'yes' }],
    ['rope_scaling.factor', { rope_scaling: { rope_type: 'llama3', low_freq_factor: 1, high_freq_factor: 4 } }],
    [
      'rope_scaling.high_freq_factor',
      { rope_scaling: { rope_type: 'llama3', factor: 8, low_freq_factor: 4, high_freq_factor: 4 } },
    ],
  ])('refuses a wrong %s, naming it', (field, change) => {
    const error = refusal({ ...tiny('llama-tied'), ...change });
    expect(error).toMatchObject({ code: 'model_invalid', details: { field: `config.json: ${field}` } });
  });

  it('answers any JSON with a config or one of its two codes', () => {
    const base = tiny('llama-tied');
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.keys(base), 'rope_parameters', 'layer_types'),
        fc.jsonValue(),
        (key, value) => {
          try {
            parseModelConfig({ ...base, [key]: value }, value);
          } catch (error) {
            expect(LoopwrightError.isInstance(error) && error.code).toMatch(/^(unsupported_model|model_invalid)$/);
          }
        },
      ),
      { numRuns: 1000 },
    );
    expect(refusal([])).toMatchObject({ code: 'model_invalid' });
    expect(refusal(null)).toMatchObject({ code: 'model_invalid' });
  });
});
