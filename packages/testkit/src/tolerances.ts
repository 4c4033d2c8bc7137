/**
 * How far a value may be from its reference, one row a quantity, each with its reason. All for float32 on a CPU.
 *
 * The distance between the float32 and a true float64 run of the reference ("measured" below) is what one honest engine errs by;
 * another errs as much in another direction. Bounds are four to eight times that: tighter ones fail by chance, wider ones stop
 * catching mistakes (the smallest known mistake, a wrong RMSNorm epsilon, moves log-probs by 8e-4).
 */

/** |Δ| ≤ abs + rel · |expected| for each value; with `mean`, the mean of |Δ| is bounded as well. */
export interface ElementTolerance {
  readonly kind: 'elements';
  readonly abs: number;
  readonly rel: number;
  readonly mean?: number;
  readonly reason: string;
}

/**
 * For a tensor as a whole: max |Δ| ≤ max · max |expected|, and ‖Δ‖₂ ≤ l2 · ‖expected‖₂ where `l2` is given. Never relative by
 * element: small elements of a gradient are sums that cancelled, and their relative error is anything.
 */
export interface TensorTolerance {
  readonly kind: 'tensor';
  readonly max: number;
  readonly l2?: number;
  readonly reason: string;
}

/** |Δ| ≤ rel · magnitude, where the caller gives the sum of the magnitudes of what was summed: the sum itself may cancel. */
export interface SumTolerance {
  readonly kind: 'sum';
  readonly rel: number;
  readonly reason: string;
}

export type Tolerance = ElementTolerance | TensorTolerance | SumTolerance;

export const tolerances = {
  /** Logits of tiny models. */
  tinyLogits: { kind: 'elements', abs: 1e-4, rel: 0, reason: 'measured 2e-5: logits up to 10 from sums of 64 terms' },
  /** Log-probs of tiny models, with or without an adapter. */
  tinyLogprobs: { kind: 'elements', abs: 5e-5, rel: 0, reason: 'measured 1.3e-5' },
  tokenLoss: {
    kind: 'elements',
    abs: 2e-5,
    rel: 5e-5,
    reason: 'measured 7e-5 at most: a ratio loss multiplies the error of the log-prob by ratio and advantage',
  },
  /** Magnitude: the sum of |token loss|. */
  lossSum: { kind: 'sum', rel: 1e-5, reason: 'measured 1.6e-6 of the sum of magnitudes' },
  gradient: { kind: 'tensor', max: 5e-5, l2: 3e-5, reason: 'measured 7e-6 of the largest element, 5e-6 in the norm' },
  gradientNorm: { kind: 'elements', abs: 0, rel: 2e-5, reason: 'measured 4e-6' },
  /** Gradients of several calls added up, against one call. */
  accumulation: { kind: 'tensor', max: 1e-6, reason: 'measured 1e-7: only the order of float32 additions differs' },
  adamParameter: {
    kind: 'elements',
    abs: 5e-7,
    rel: 0,
    reason: 'measured 8e-8 with given gradients: steps of some 1e-3, parameters of size 1 whose spacing is 1.2e-7',
  },
  adamFirstMoment: { kind: 'tensor', max: 1e-6, reason: 'measured 1.2e-7 of the largest element' },
  adamSecondMoment: {
    kind: 'tensor',
    max: 2e-6,
    reason: 'measured 1.8e-7 of the largest element: squares double an error',
  },
  /** Losses of five training steps. */
  trainingLoss: { kind: 'elements', abs: 0, rel: 5e-5, reason: 'measured 4e-6' },
  /** Parameters after five training steps with eps 1e-8; with 1e-12 noise in near-zero gradients becomes whole steps. */
  trainingParameter: { kind: 'elements', abs: 2e-5, rel: 0, reason: 'measured 2e-6' },
  smolLogprobs: { kind: 'elements', abs: 2e-4, rel: 0, reason: 'measured 3e-5: 30 layers of width 576' },
  smolLongLogprobs: {
    kind: 'elements',
    abs: 1e-3,
    rel: 0,
    mean: 3e-5,
    reason: 'measured 2.1e-4 at one ill-conditioned early position of 612, 3e-5 elsewhere, mean 7e-6',
  },
  smolGradientNorm: { kind: 'elements', abs: 0, rel: 1e-3, reason: 'follows from the error of the log-probs' },
  /** Log-prob of one token and weights, by trainer and by sampler. */
  trainerVersusSampler: {
    kind: 'elements',
    abs: 1e-4,
    rel: 0,
    reason: 'promised; two graphs, each within tinyLogprobs',
  },
} as const satisfies Record<string, Tolerance>;
