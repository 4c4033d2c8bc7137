/** AdamW parameters below the wires: complete, sent with every step. */

export interface AdamParams {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  /** Decoupled (AdamW, arXiv:1711.05101): p ← p·(1 − lr·weightDecay). */
  readonly weightDecay: number;
  /** Global-norm clip: gradients are scaled by min(1, clip / (norm + 1e-6)); 0 is off. */
  readonly gradClipNorm: number;
  /** LoRA+ (arXiv:2402.12354): B matrices step at learningRate × this. */
  readonly loraPlusLrRatio: number;
}

/** Ranges of the training-session API; inclusive but for `learningRate`, which must be above 0. */
export const adamRanges = {
  learningRate: { min: 0, max: 0.01 },
  beta1: { min: 0, max: 0.999999 },
  beta2: { min: 0, max: 0.999999 },
  eps: { min: 1e-16, max: 0.01 },
  weightDecay: { min: 0, max: 1 },
  gradClipNorm: { min: 0, max: 100 },
  loraPlusLrRatio: { min: 1, max: 100 },
} as const satisfies Record<keyof AdamParams, { min: number; max: number }>;
