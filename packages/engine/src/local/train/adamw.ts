/**
 * AdamW (arXiv:1711.05101) with bias correction, as torch computes it:
 * p ← p·(1 − lr·wd); m ← β₁m + (1−β₁)g; v ← β₂v + (1−β₂)g²; p ← p − lr·m̂ / (√v̂ + ε), with m̂ = m/(1−β₁ᵗ), v̂ = v/(1−β₂ᵗ).
 * Arithmetic in float64, state in float32.
 */
import type { AdamParams } from '@loopwright/protocol';

export interface Moments {
  readonly m: Float32Array;
  readonly v: Float32Array;
}

export interface AdamStep extends AdamParams {
  /** t, counted from 1. */
  readonly step: number;
  /** Factor on the gradient from clipping. */
  readonly gradientScale: number;
}

/** Updates `parameter` and its moments in place. A missing gradient counts as zeros: moments decay, and so do weights. */
export function adamUpdate(
  parameter: Float32Array,
  gradient: Float32Array | undefined,
  { m, v }: Moments,
  options: AdamStep,
): void {
  const { learningRate, beta1, beta2, eps, weightDecay, step, gradientScale } = options;
  const keep = 1 - learningRate * weightDecay;
  const stepSize = learningRate / (1 - beta1 ** step);
  const secondScale = 1 / Math.sqrt(1 - beta2 ** step);
  for (let i = 0; i < parameter.length; i++) {
    const g = gradient === undefined ? 0 : gradient[i]! * gradientScale;
    const first = beta1 * m[i]! + (1 - beta1) * g;
    const second = beta2 * v[i]! + (1 - beta2) * g * g;
    m[i] = first;
    v[i] = second;
    parameter[i] = parameter[i]! * keep - (stepSize * first) / (Math.sqrt(second) * secondScale + eps);
  }
}

/** √Σ g² over all arrays, in float64. */
export function globalNorm(gradients: Iterable<Float32Array>): number {
  let sum = 0;
  for (const gradient of gradients) {
    let part = 0;
    for (let i = 0; i < gradient.length; i++) part += gradient[i]! * gradient[i]!;
    sum += part;
  }
  return Math.sqrt(sum);
}

/** min(1, clip / (norm + 1e-6)); 1 where clipping is off. */
export function clipFactor(norm: number, gradClipNorm: number): number {
  return gradClipNorm === 0 ? 1 : Math.min(1, gradClipNorm / (norm + 1e-6));
}
