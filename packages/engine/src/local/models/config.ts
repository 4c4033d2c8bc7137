/** Reads a model's `config.json`, in either spelling, into the facts that the engine needs; refuses what it can't run as meant. */
import { complaint, LoopwrightError } from '@loopwright/protocol';
import { type Architecture, type ArchitectureFacts, architectures } from './architectures.js';

/** The frequency scaling of Llama 3.1 and later: long waves slowed by `factor`, short ones left, a ramp between. */
export interface RopeScaling {
  readonly type: 'llama3';
  readonly factor: number;
  readonly lowFreqFactor: number;
  readonly highFreqFactor: number;
  /** Context length of the training before the scaling, in tokens. */
  readonly originalContext: number;
}

/** Layers that see the last tokens alone. */
export interface SlidingWindow {
  /** A token sees itself and the `tokens` − 1 before it. */
  readonly tokens: number;
  /** By layer, true for those that slide. */
  readonly layers: readonly boolean[];
  /** RoPE base of these layers; they have no frequency scaling where it differs from that of the others. */
  readonly ropeTheta: number;
}

export type WeightDtype = 'float32' | 'float16' | 'bfloat16';

export interface ModelConfig {
  readonly architecture: Architecture;
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  /** Query heads; a multiple of `kvHeads`. */
  readonly heads: number;
  readonly kvHeads: number;
  /** Even. `heads × headDim` need not be `hiddenSize`. */
  readonly headDim: number;
  readonly rmsNormEps: number;
  readonly ropeTheta: number;
  readonly ropeScaling: RopeScaling | null;
  /** Tokens at most in a sequence. */
  readonly contextLength: number;
  /** The output projection is the embedding matrix; there is no `lm_head.weight`. */
  readonly tiedEmbeddings: boolean;
  /** q_proj, k_proj and v_proj have a bias. */
  readonly qkvBias: boolean;
  /** o_proj has a bias (`attention_bias` of Llama and Qwen3); then `qkvBias` is true as well. */
  readonly attentionBias: boolean;
  /** RMSNorm over each head of q and k. */
  readonly qkNorm: boolean;
  readonly hiddenAct: 'silu' | 'gelu_pytorch_tanh';
  /** Added to the stored weight of every RMSNorm. */
  readonly normOffset: 0 | 1;
  /** A norm after attention and after the MLP, besides those before them. */
  readonly postNorms: boolean;
  /** Embeddings are multiplied by it. */
  readonly embeddingScale: number;
  /** Products of queries and keys are multiplied by it. */
  readonly attentionScale: number;
  /** What attention and MLP add to the stream is multiplied by it. */
  readonly residualScale: number;
  /** Logits are multiplied by it. */
  readonly logitScale: number;
  /** Null where all layers see everything before a token. */
  readonly slidingWindow: SlidingWindow | null;
  /** Tokens that end a sequence, from the generation config first; may be empty. */
  readonly eosTokenIds: readonly number[];
  readonly bosTokenId: number | null;
  /** What the weights are stored in, as the config says it; the files decide. */
  readonly dtype: WeightDtype;
}

/** Largest sizes that are taken as a model's: far above any published one, and small enough that no list made from them is a danger. */
const limits = {
  vocab_size: 2 ** 24,
  hidden_size: 2 ** 17,
  intermediate_size: 2 ** 19,
  num_hidden_layers: 1024,
  num_attention_heads: 4096,
  num_key_value_heads: 4096,
  head_dim: 4096,
  max_position_embeddings: 2 ** 27,
  sliding_window: 2 ** 27,
  sliding_window_pattern: 1024,
} as const;

type Json = Readonly<Record<string, unknown>>;

/**
 * A model's config.
 *
 * @param json the parsed `config.json`; `rope_theta`, `rope_scaling` and `torch_dtype` at the top, or `rope_parameters` and
 *   `dtype` as transformers 5 writes them
 * @param generation the parsed `generation_config.json`, where there is one: its end tokens come first
 * @throws `unsupported_model` for an architecture, activation, RoPE kind, window, bias or quantization that isn't implemented;
 *   `model_invalid` for missing or malformed fields. Both name the field
 */
export function parseModelConfig(json: unknown, generation?: unknown): ModelConfig {
  if (!isRecord(json)) throw malformed('config.json', 'a JSON object', describe(json));
  const architecture = readArchitecture(json);
  const facts: ArchitectureFacts = architectures[architecture];

  const hiddenSize = readSize(json, 'hidden_size');
  const heads = readSize(json, 'num_attention_heads');
  const kvHeads = readSize(json, 'num_key_value_heads', heads);
  const headDim = readHeadDim(json, { facts, hiddenSize, heads });
  const vocabSize = readSize(json, 'vocab_size');
  if (heads % kvHeads !== 0) {
    throw malformed('num_key_value_heads', `a divisor of num_attention_heads (${heads})`, `${kvHeads}`);
  }
  refuseUnsupported(json, facts);
  const attentionBias = facts.attentionBias === 'config' && readFlag(json, 'attention_bias');
  const layers = readSize(json, 'num_hidden_layers');
  const rope = readRope(json, facts);
  return {
    architecture,
    vocabSize,
    hiddenSize,
    intermediateSize: readSize(json, 'intermediate_size'),
    layers,
    heads,
    kvHeads,
    headDim,
    rmsNormEps: readPositive(json, 'rms_norm_eps', { fallback: 1e-6 }),
    ropeTheta: rope.ropeTheta,
    ropeScaling: rope.ropeScaling,
    contextLength: readSize(json, 'max_position_embeddings'),
    tiedEmbeddings: readFlag(json, 'tie_word_embeddings', facts.tiedByDefault),
    qkvBias: attentionBias || facts.attentionBias === 'qkv',
    attentionBias,
    qkNorm: facts.qkNorm,
    hiddenAct: facts.activation.name,
    normOffset: facts.normOffset,
    postNorms: facts.postNorms,
    ...readScales(json, { facts, hiddenSize, headDim }),
    slidingWindow: readSlidingWindow(json, { facts, layers, ropeTheta: rope.slidingRopeTheta }),
    eosTokenIds: readEndTokens([generation, json], vocabSize),
    bosTokenId: readTokenIds(json.bos_token_id, 'bos_token_id', vocabSize)[0] ?? null,
    dtype: readDtype(json),
  };
}

function readArchitecture(json: Json): Architecture {
  const type = json.model_type;
  const classes = Array.isArray(json.architectures) ? json.architectures : [];
  if (typeof type !== 'string' || !Object.hasOwn(architectures, type)) {
    throw unsupported('model_type', Object.keys(architectures).join(', '), describe(type));
  }
  const architecture = type as Architecture; // Just found among the keys.
  const { causalClass } = architectures[architecture];
  if (classes.length > 0 && !classes.includes(causalClass)) {
    throw unsupported('architectures', causalClass, classes.slice(0, 3).map(describe).join(', '));
  }
  return architecture;
}

function readHeadDim(
  json: Json,
  { facts, hiddenSize, heads }: { facts: ArchitectureFacts; hiddenSize: number; heads: number },
): number {
  const fallback = facts.defaultHeadDim === 'hidden / heads' ? hiddenSize / heads : facts.defaultHeadDim;
  const headDim = readSize(json, 'head_dim', fallback);
  if (headDim % 2 !== 0) throw malformed('head_dim', 'an even number (RoPE turns pairs)', `${headDim}`);
  return headDim;
}

type Scales = Pick<ModelConfig, 'embeddingScale' | 'attentionScale' | 'residualScale' | 'logitScale'>;

function readScales(
  json: Json,
  { facts, hiddenSize, headDim }: { facts: ArchitectureFacts; hiddenSize: number; headDim: number },
): Scales {
  if (facts.multipliers) {
    const multiplier = (field: string) => readPositive(json, field, { fallback: 1 });
    return {
      embeddingScale: multiplier('embedding_multiplier'),
      attentionScale: multiplier('attention_multiplier'),
      residualScale: multiplier('residual_multiplier'),
      logitScale: 1 / multiplier('logits_scaling'),
    };
  }
  const queryScale = facts.scaledEmbeddings ? readPositive(json, 'query_pre_attn_scalar', { fallback: 256 }) : headDim;
  const embeddingScale = facts.scaledEmbeddings ? Math.sqrt(hiddenSize) : 1;
  return { embeddingScale, attentionScale: 1 / Math.sqrt(queryScale), residualScale: 1, logitScale: 1 };
}

function refuseUnsupported(json: Json, facts: ArchitectureFacts): void {
  const { field, name } = facts.activation;
  const activation = json[field] ?? json.hidden_act ?? name;
  if (activation !== name)
    throw unsupported(json[field] === undefined ? 'hidden_act' : field, name, describe(activation));
  for (const cap of ['attn_logit_softcapping', 'final_logit_softcapping']) {
    if (isPresent(json[cap])) throw unsupported(cap, 'none', describe(json[cap]));
  }
  if (readFlag(json, 'use_bidirectional_attention')) throw unsupported('use_bidirectional_attention', 'false', 'true');
  if (readFlag(json, 'mlp_bias')) throw unsupported('mlp_bias', 'false', 'true');
  if (isPresent(json.quantization_config)) {
    throw unsupported('quantization_config', 'none (float32, float16 or bfloat16 weights)', 'a quantized model');
  }
  if (isPresent(json.partial_rotary_factor) && json.partial_rotary_factor !== 1) {
    throw unsupported('partial_rotary_factor', '1', describe(json.partial_rotary_factor));
  }
}

/** Kinds of layers in `layer_types`. */
const [fullAttention, slidingAttention] = ['full_attention', 'sliding_attention'];

function readSlidingWindow(
  json: Json,
  {
    facts,
    layers,
    ropeTheta,
  }: { readonly facts: ArchitectureFacts; readonly layers: number; readonly ropeTheta: number },
): SlidingWindow | null {
  const types = Array.isArray(json.layer_types) ? json.layer_types : undefined;
  switch (facts.slidingLayers) {
    case 'none':
    case 'off': {
      const slides = types?.some((kind) => kind !== fullAttention) === true;
      if (slides || (facts.slidingLayers === 'off' && readFlag(json, 'use_sliding_window'))) {
        const field = slides ? 'layer_types' : 'use_sliding_window';
        throw unsupported(field, 'full attention in every layer of this architecture', 'a sliding window');
      }
      return null;
    }
    case 'all':
      // Null switches it off; a config that doesn't mention it has the default of transformers.
      if (json.sliding_window === null) return null;
      return { tokens: readSize(json, 'sliding_window', 4096), layers: new Array(layers).fill(true), ropeTheta };
    case 'by type': {
      const pattern = readSize(json, 'sliding_window_pattern', 6);
      const kinds =
        types ?? Array.from({ length: layers }, (_, i) => ((i + 1) % pattern ? slidingAttention : fullAttention));
      if (kinds.length !== layers) throw malformed('layer_types', `${layers} kinds of layers`, `${kinds.length}`);
      const other = kinds.find((kind) => kind !== slidingAttention && kind !== fullAttention);
      if (other !== undefined)
        throw unsupported('layer_types', `${slidingAttention}, ${fullAttention}`, describe(other));
      const slides = kinds.map((kind) => kind === slidingAttention);
      if (!slides.includes(true)) return null;
      return { tokens: readSize(json, 'sliding_window', 4096), layers: slides, ropeTheta };
    }
  }
}

interface Rope extends Pick<ModelConfig, 'ropeTheta' | 'ropeScaling'> {
  /** Of sliding layers. */
  readonly slidingRopeTheta: number;
}

function readRope(json: Json, facts: ArchitectureFacts): Rope {
  if (facts.slidingLayers !== 'by type') {
    const rope = readRopeOf(json, 10_000);
    return { ...rope, slidingRopeTheta: rope.ropeTheta };
  }
  const parameters = json.rope_parameters;
  if (!isRecord(parameters) || !isRecord(parameters.full_attention)) {
    const slidingRopeTheta = readPositive(json, 'rope_local_base_freq', { fallback: 10_000 });
    return { ...readRopeOf(json, 1_000_000), slidingRopeTheta };
  }
  const { full_attention: full, sliding_attention: sliding = {} } = parameters;
  const local = readRopeOf({ rope_parameters: sliding }, 10_000);
  if (local.ropeScaling !== null) throw unsupported('rope_parameters', 'plain RoPE in sliding layers', 'a scaling');
  return { ...readRopeOf({ rope_parameters: full }, 1_000_000), slidingRopeTheta: local.ropeTheta };
}

function readRopeOf(json: Json, defaultTheta: number): Pick<ModelConfig, 'ropeTheta' | 'ropeScaling'> {
  const parameters = json.rope_parameters;
  const isNew = isPresent(parameters);
  const at = isNew ? 'rope_parameters' : 'rope_scaling';
  const rope = isNew ? parameters : (json.rope_scaling ?? {});
  if (!isRecord(rope)) throw malformed(at, 'an object or null', describe(rope));
  // Files of a time in between have the new object without theta, and theta at the top.
  const ropeTheta = readPositive(isNew && 'rope_theta' in rope ? rope : json, 'rope_theta', {
    fallback: defaultTheta,
  });
  const type = rope.rope_type ?? rope.type ?? 'default';
  switch (type) {
    case 'default':
      if (Object.values(rope).some(isRecord)) {
        throw unsupported(at, 'one set of parameters for all layers', 'one per kind of layer');
      }
      return { ropeTheta, ropeScaling: null };
    case 'llama3': {
      const lowFreqFactor = readPositive(rope, 'low_freq_factor', { at });
      const highFreqFactor = readPositive(rope, 'high_freq_factor', { at });
      if (highFreqFactor <= lowFreqFactor) {
        throw malformed(`${at}.high_freq_factor`, `above low_freq_factor (${lowFreqFactor})`, `${highFreqFactor}`);
      }
      const factor = readPositive(rope, 'factor', { at });
      const originalContext = readPositive(rope, 'original_max_position_embeddings', { at });
      return { ropeTheta, ropeScaling: { type: 'llama3', factor, lowFreqFactor, highFreqFactor, originalContext } };
    }
    default:
      throw unsupported(`${at}.rope_type`, 'default or llama3', describe(type));
  }
}

function readDtype(json: Json): WeightDtype {
  const raw = json.torch_dtype ?? json.dtype ?? 'float32';
  const name = typeof raw === 'string' ? raw.replace(/^torch\./, '') : raw;
  if (name === 'float32' || name === 'float16' || name === 'bfloat16') return name;
  throw unsupported(
    isPresent(json.torch_dtype) ? 'torch_dtype' : 'dtype',
    'float32, float16 or bfloat16',
    describe(raw),
  );
}

function readEndTokens(sources: readonly unknown[], vocabSize: number): number[] {
  const ids = sources.flatMap((source) =>
    isRecord(source) ? readTokenIds(source.eos_token_id, 'eos_token_id', vocabSize) : [],
  );
  return [...new Set(ids)];
}

function readTokenIds(value: unknown, field: string, vocabSize: number): number[] {
  if (!isPresent(value)) return [];
  const ids = Array.isArray(value) ? value : [value];
  return ids.map((id: unknown) => {
    if (typeof id === 'number' && Number.isInteger(id) && id >= 0 && id < vocabSize) return id;
    throw malformed(field, `token ids below ${vocabSize}`, describe(id));
  });
}

function readSize(json: Json, field: keyof typeof limits, fallback?: number): number {
  const value = json[field] ?? fallback;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > limits[field]) {
    throw malformed(field, `a whole number from 1 to ${limits[field]}`, describe(value));
  }
  return value;
}

function readPositive(
  json: Json,
  field: string,
  { fallback, at }: { readonly fallback?: number; readonly at?: string } = {},
): number {
  const value = json[field] ?? fallback;
  if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) {
    throw malformed(at === undefined ? field : `${at}.${field}`, 'a number above 0', describe(value));
  }
  return value;
}

function readFlag(json: Json, field: string, fallback = false): boolean {
  const value = json[field] ?? fallback;
  if (typeof value !== 'boolean') throw malformed(field, 'true or false', describe(value));
  return value;
}

function unsupported(field: string, expected: string, got: string): LoopwrightError {
  const supported = Object.keys(architectures).join(', ');
  const remedy = `choose a model of one of the architectures ${supported}, or add it: docs/guides/add-an-architecture.md`;
  return new LoopwrightError({
    code: 'unsupported_model',
    message: `config.json: ${field}: the engine runs ${expected}, this model has ${got}; ${remedy}`,
    details: {
      field,
      expected,
      got,
      supported: Object.keys(architectures),
      remedy,
    },
  });
}

function malformed(field: string, expected: string, got: string): LoopwrightError {
  return complaint({
    code: 'model_invalid',
    field: field === 'config.json' ? field : `config.json: ${field}`,
    expected,
    got,
    remedy: 'mend config.json or download the model again',
  });
}

function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80));
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
