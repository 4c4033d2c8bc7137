/**
 * How far log-probs (nats) of two tools may be apart, and why.
 *
 * A product of a row of n numbers, each rounded with a relative error e, is off by about e of its size: errors of single numbers average
 * out as the products do. Through L layers such errors add up like √L on the residual stream, whose size the last norm takes away again,
 * so that logits of size S are off by some e·S·√L. Logits here are up to about 20, layers 2 to 30.
 */
export interface Limit {
  readonly largest: number;
  readonly mean: number;
}

export const limits = {
  /** Both compute in float32 (e = 2⁻²⁴) from the same numbers, in another order of additions: e·S·√L is 7e-6; ten times that, and twice more for exponentials. */
  float32: { largest: 2e-4, mean: 2e-5 },
  /** llama.cpp rounds activations to the type of the weights as well: e = 2⁻¹²·√2 (rounding to nearest, rms of both), so e·S·√L is 0.04 at most. */
  f16: { largest: 0.1, mean: 0.01 },
  /** A block of 32 has steps of its largest / 127: e is about 2⁻⁸·√2 for weights and activations together, 16 times that of F16, so e·S·√L is 0.6 at most. */
  q8_0: { largest: 1, mean: 0.1 },
} as const satisfies Readonly<Record<string, Limit>>;
