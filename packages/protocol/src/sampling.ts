/** Sampling parameters below the wires: complete, with the seed drawn. */

export interface SamplingParams {
  /** New tokens at most, ≥ 1. */
  readonly maxTokens: number;
  /** 0 is greedy. */
  readonly temperature: number;
  /** Keep the k likeliest; −1 keeps all. */
  readonly topK: number;
  /** Keep the smallest set of tokens whose probability reaches topP; 1 keeps all. */
  readonly topP: number;
  /** The draw of (seed, sample index, position) comes from a hash of the three. */
  readonly seed: number;
  /** Generation ends when one of these appears in the decoded text; its tokens are kept. */
  readonly stop: readonly string[];
  /** Generation ends after one of these ids, which is kept; the model's end-of-sequence ids are among them. */
  readonly stopTokenIds: readonly number[];
  /** Whether the model's end-of-sequence ids are not; absent is no. */
  readonly ignoreEos?: boolean;
}

/** `stop`: a stop string, a stop id or end of sequence; `length`: maxTokens or the end of the context. */
export type StopReason = 'stop' | 'length';

/** Ranges that every wire enforces. */
export const samplingRanges = {
  numSamples: { min: 1, max: 1000 },
  maxTokens: { min: 1, max: 131_072 },
  temperature: { min: 0, max: 2 },
  topP: { min: 0, max: 1 },
  topkPromptLogprobs: { min: 0, max: 20 },
  topkSampleLogprobs: { min: 0, max: 20 },
} as const;
