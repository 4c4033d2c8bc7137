/** A datum below the wires: complete, checked, in typed arrays. */
import type { FloatTensor, IdTensor } from './tensor.js';

/** N = tokens of the model input, K = targets per position (1 but for cross_entropy with several targets). */
export interface Datum {
  /** Token ids, length N ≥ 1. */
  readonly modelInput: Int32Array;
  /** (N) or (N,K). */
  readonly targetTokens: IdTensor;
  /** Same shape as `targetTokens`; absent means 1 everywhere. */
  readonly weights?: FloatTensor;
  /** (N) each. */
  readonly advantages?: FloatTensor;
  readonly logprobs?: FloatTensor;
  readonly refLogProb?: FloatTensor;
  readonly temperature?: FloatTensor;
}
