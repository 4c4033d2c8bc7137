/** Where the reference values are, and readers for them. What each file holds is in `fixtures/README.md`. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type NamedTensor, readSafetensors } from '@loopwright/engine';

/** Tiny random models with stored values. */
export const tinyModels = [
  'llama-tied',
  'llama-untied',
  'llama-rope3',
  'qwen2',
  'qwen3',
  'mistral',
  'gemma3',
  'granite',
] as const;
export type TinyModel = (typeof tinyModels)[number];

/** PEFT adapters on them. */
export const loraAdapters = [
  'llama-tied',
  'qwen2',
  'qwen3',
  'llama-tied-lm-head',
  'llama-untied-lm-head',
  'llama-tied-qv-r4',
  'llama-tied-rslora',
  'granite',
] as const;
export type LoraAdapter = (typeof loraAdapters)[number];

/** Absolute path of a file or folder below `fixtures/`. */
export function fixturePath(relative: string): string {
  return fileURLToPath(new URL(`../fixtures/${relative}`, import.meta.url));
}

/** A Hugging Face directory: config.json, model.safetensors. */
export function tinyModelDirectory(model: TinyModel): string {
  return fixturePath(`tiny/${model}`);
}

/** A GGUF file of llama-rope3 whose matrices are of all types in turn, with a tokenizer; `gguf/expected.json` says what is in it. */
export function mixedGgufFile(): string {
  return fixturePath('gguf/llama-rope3-mixed.gguf');
}

/** A PEFT directory. */
export function loraAdapterDirectory(adapter: LoraAdapter): string {
  return fixturePath(`lora/${adapter}/adapter`);
}

/** A JSON fixture; the caller says what is in it. */
export function readFixtureJson<T>(relative: string): T {
  return JSON.parse(readFileSync(fixturePath(relative), 'utf8')) as T; // Our own files; the README says what they hold.
}

/** Float tensors of a safetensors fixture, by name; `seq0.input_ids` and other whole numbers are in the JSON beside it. */
export async function readFixtureTensors(relative: string): Promise<Map<string, NamedTensor>> {
  return readSafetensors(fixturePath(relative));
}

/** `tiny/<model>/expected.json`. T tokens. */
export interface TinyExpected {
  readonly sequences: readonly {
    /** T */
    readonly input_ids: readonly number[];
    /** T−1: log p(input_ids[i+1] | input_ids[..i]) */
    readonly logprobs: readonly number[];
    /** The likeliest tokens that follow, no stop token. */
    readonly greedy_16: readonly number[];
  }[];
}

/** `gguf/expected.json`. */
export interface GgufExpected {
  /** By the name in Hugging Face files. */
  readonly tensor_types: Readonly<Record<string, string>>;
  /** Of the dequantized values, rows in the order of Hugging Face files. */
  readonly sha256_of_float32: Readonly<Record<string, string>>;
  readonly input_ids: readonly number[];
  readonly logprobs: readonly number[];
  readonly greedy_16: readonly number[];
  /** Blocks of random bytes, and their values. */
  readonly q6_k: { readonly blocks_hex: string; readonly values: readonly number[] };
  /** Values, and the blocks that ggml makes of them. */
  readonly q8_0: { readonly blocks_hex: string; readonly values: readonly number[] };
  /** The file's vocabulary under each way of cutting a text. */
  readonly tokenizers: Readonly<Record<string, readonly { readonly text: string; readonly ids: readonly number[] }[]>>;
}

/** A datum of `lora/<adapter>/batch.json`; N positions each, `topk_*` are (N,3). */
export interface LoraBatchDatum {
  readonly model_input: readonly number[];
  readonly target_tokens: readonly number[];
  readonly weights: readonly number[];
  readonly logprobs: readonly number[];
  readonly advantages: readonly number[];
  readonly topk_target_tokens: readonly (readonly number[])[];
  readonly topk_weights: readonly (readonly number[])[];
  readonly prompt_length: number;
}

export interface LoraBatch {
  readonly datums: readonly LoraBatchDatum[];
}

/** One loss on the batch; gradients are in `grads/<case>.safetensors` beside it. */
export interface LossCase {
  readonly loss_fn: string;
  readonly loss_fn_config: Readonly<Record<string, number>>;
  /** The token losses are multiplied by the datum's weights. */
  readonly uses_weights: boolean;
  readonly loss_sum: number;
  /** By datum and position (and target, for top-k). */
  readonly token_losses: readonly (readonly (number | readonly number[])[])[];
  readonly logprobs: readonly (readonly (number | readonly number[])[])[];
  readonly ratios?: readonly (readonly number[])[];
  readonly grad_norm: number;
}

/** `lora/<adapter>/expected.json`; `losses` is absent for adapters with log-probs only. */
export interface LoraExpected {
  readonly base_model: string;
  readonly rank: number;
  readonly alpha: number;
  readonly scale: number;
  readonly sequences: readonly {
    readonly input_ids: readonly number[];
    readonly logprobs: readonly number[];
    readonly base_logprobs: readonly number[];
  }[];
  readonly losses?: Readonly<Record<string, LossCase>>;
}

/** `full/<model>.json`: cross_entropy with every weight trained. */
export interface FullExpected {
  readonly datums: readonly {
    readonly model_input: readonly number[];
    readonly target_tokens: readonly number[];
    readonly weights: readonly number[];
  }[];
  readonly loss_sum: number;
  readonly token_losses: readonly (readonly number[])[];
  readonly logprobs: readonly (readonly number[])[];
  readonly grad_norm: number;
  readonly grad_norm_per_tensor: Readonly<Record<string, number>>;
}

interface AdamFixtureParams {
  readonly learning_rate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weight_decay: number;
  /** 0 is off. */
  readonly grad_clip_norm: number;
  readonly lora_plus_lr_ratio: number;
}

export interface OptimizerCase {
  /** The file with `param.<name>` and `step{1,2,3}.grad.<name>`. */
  readonly inputs: string;
  readonly params: AdamFixtureParams;
  readonly grad_norms_before_clipping: readonly number[];
  readonly clip_factors: readonly number[];
}

/** `optim/expected.json`. */
export interface OptimizerExpected {
  readonly cases: Readonly<Record<string, OptimizerCase>>;
}

/** `optim/train-<adapter>.json`: five steps, gradients recomputed. */
export interface TrainingExpected {
  readonly adapter: string;
  readonly batch: string;
  readonly params: AdamFixtureParams;
  readonly steps: readonly { readonly loss_fn: string; readonly loss_sum: number; readonly grad_norm: number }[];
  readonly cross_entropy_loss_after_last_step: number;
  readonly logprobs_after_last_step: readonly (readonly number[])[];
}

/** `smollm2/forward.json`. */
export interface SmolForward {
  readonly prompts: readonly {
    readonly name: string;
    readonly text: string;
    readonly input_ids: readonly number[];
    readonly logprobs: readonly number[];
    readonly top5_last_position: { readonly ids: readonly number[]; readonly logits: readonly number[] };
    readonly greedy_32: readonly number[];
    readonly greedy_32_logprobs: readonly number[];
  }[];
}

/** `smollm2/lora.json`; the adapter's values come from the formula in the file. */
export interface SmolLora {
  readonly rank: number;
  readonly alpha: number;
  readonly target_modules: readonly string[];
  readonly modules_sorted: readonly string[];
  readonly check_values: {
    readonly module: string;
    readonly A_first_4: readonly number[];
    readonly B_first_4_b_nonzero: readonly number[];
  };
  readonly datum: {
    readonly model_input: readonly number[];
    readonly target_tokens: readonly number[];
    readonly weights: readonly number[];
  };
  readonly variants: Readonly<
    Record<
      string,
      {
        readonly scale_b: number;
        readonly loss_sum: number;
        readonly logprobs: readonly number[];
        readonly grad_norm: number;
        readonly grad_norm_per_module: Readonly<Record<string, { readonly A: number; readonly B: number }>>;
      }
    >
  >;
}
