/**
 * The losses and their inputs: the one list that wires, client types, server checks and engine share.
 *
 * Notation: lp = log p(target) at temperature 1, q = `logprobs`, A = `advantages`, w = `weights`, r = exp(lp − q).
 * Every loss is a plain sum over tokens and datums; nothing is divided. The caller shifts: position t of the model
 * input predicts `targetTokens[t]`.
 */

/** Per-token inputs of a loss, by their names in TypeScript. Each is as long as the model input. */
export const lossInputs = {
  /** int, (N) or (N,K) for cross_entropy. */
  targetTokens: { kind: 'id' },
  /** float, same shape as `targetTokens`; 0 leaves a position out. */
  weights: { kind: 'float' },
  /** float (N). */
  advantages: { kind: 'float' },
  /** float (N): log-probabilities under the policy that sampled. */
  logprobs: { kind: 'float' },
  /** float (N): log-probabilities under a reference model; reported as a KL metric, never part of the loss. */
  refLogProb: { kind: 'float' },
  /** float (N): logits are divided by it before the log-softmax; 1 where absent. */
  temperature: { kind: 'float' },
} as const satisfies Record<string, { kind: 'id' | 'float' }>;

export type LossInputName = keyof typeof lossInputs;

interface LossConfigKey {
  readonly min: number;
  readonly max: number;
}

interface LossRow {
  readonly required: readonly LossInputName[];
  readonly optional: readonly LossInputName[];
  readonly config: Readonly<Record<string, LossConfigKey>>;
  readonly doc: string;
}

const clip = { clipLowThreshold: { min: 0, max: 1 }, clipHighThreshold: { min: 1, max: 10 } } as const;
const rl = ['targetTokens', 'weights', 'advantages', 'logprobs'] as const;
const extra = ['refLogProb', 'temperature'] as const;

/** Every loss: what it needs, what it may be given, its configuration keys with their ranges. */
export const losses = {
  cross_entropy: { required: ['targetTokens', 'weights'], optional: ['temperature'], config: {}, doc: '−Σ w·lp' },
  importance_sampling: { required: rl, optional: extra, config: {}, doc: '−Σ w·r·A' },
  ppo: {
    required: rl,
    optional: extra,
    config: clip,
    doc: '−Σ w·min(r·A, clamp(r, low, high)·A); thresholds bound the ratio (arXiv:1707.06347)',
  },
  cispo: { required: rl, optional: extra, config: clip, doc: '−Σ w·sg(clamp(r, low, high))·A·lp (arXiv:2506.13585)' },
  dro: {
    required: rl,
    optional: extra,
    config: { beta: { min: 0, max: 1000 } },
    doc: '−Σ w·[lp·A − β/2·(lp − q)²], leaving out positions with A = 0 and q = 0',
  },
} as const satisfies Record<string, LossRow>;

export type LossName = keyof typeof losses;
export const lossNames = Object.keys(losses) as readonly LossName[]; // true: the keys of the table above

/** The complete configuration of a loss, with no defaults left open. */
export type LossSpec =
  | { readonly name: 'cross_entropy' }
  | { readonly name: 'importance_sampling' }
  | { readonly name: 'ppo' | 'cispo'; readonly clipLowThreshold: number; readonly clipHighThreshold: number }
  | { readonly name: 'dro'; readonly beta: number };

/** What a caller may set for a loss; the wire fills in the rest. */
export type LossConfig<L extends LossName> = { readonly [K in keyof (typeof losses)[L]['config']]?: number };

/** Numbers as a caller writes them: flat, or rows for (N,K). */
export type NumberArray = readonly number[] | Float32Array | Float64Array | Int32Array | readonly (readonly number[])[];

/** The loss inputs of `L`: required ones must be there, unknown ones do not compile. */
export type LossInputsFor<L extends LossName> = {
  readonly [K in (typeof losses)[L]['required'][number]]: NumberArray;
} & { readonly [K in (typeof losses)[L]['optional'][number]]?: NumberArray };

/** A datum as a caller writes it, tied to the losses that it can feed. */
export interface DatumFor<L extends LossName> {
  /** Token ids, length N ≥ 1. */
  readonly modelInput: readonly number[] | Int32Array;
  readonly lossFnInputs: LossInputsFor<L>;
}
