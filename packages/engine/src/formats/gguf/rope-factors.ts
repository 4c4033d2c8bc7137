/**
 * The frequency scaling of Llama 3 as GGUF files hold it: a tensor of what each frequency is divided by, without the settings that
 * it came from. They are found again, so that the model can be written with its config.
 */
import type { RopeScaling } from '../../local/models/config.js';
import { ropeFrequencies } from '../../local/models/rope.js';

export interface RopeBase {
  readonly headDim: number;
  readonly ropeTheta: number;
}

/** What each of the headDim/2 frequencies is divided by. */
export function ropeFactors(base: RopeBase, ropeScaling: RopeScaling): Float32Array {
  const plain = ropeFrequencies({ ...base, ropeScaling: null });
  const scaled = ropeFrequencies({ ...base, ropeScaling });
  return Float32Array.from(plain, (frequency, i) => frequency / scaled[i]!);
}

/**
 * Settings that give these factors to within float32; undefined where there are none. All models of this kind have
 * `low_freq_factor` 1 and `high_freq_factor` 4.
 */
export function findRopeScaling(factors: Float32Array, base: RopeBase): RopeScaling | undefined {
  const factor = Math.max(...factors);
  const settings = { type: 'llama3', factor, lowFreqFactor: 1, highFreqFactor: 4 } as const;
  const plain = ropeFrequencies({ ...base, ropeScaling: null });
  // Each factor on the ramp between 1 and the largest tells the context length; several tell the same.
  const candidates = [...factors].flatMap((value, i) => {
    if (value <= 1 || value >= factor) return [];
    const smooth = (1 / value - 1 / factor) / (1 - 1 / factor);
    return Math.round(((2 * Math.PI) / plain[i]!) * (smooth * 3 + 1));
  });
  // With none on the ramp, the context lies anywhere between the waves on both sides of it.
  const last = [...factors].lastIndexOf(1);
  const between = last >= 0 && last + 1 < plain.length ? [Math.floor((2 * Math.PI) / plain[last + 1]!)] : [];
  return [...candidates, ...between]
    .map((originalContext): RopeScaling => ({ ...settings, originalContext }))
    .find((scaling) => {
      const again = ropeFactors(base, scaling);
      return factors.every((value, i) => Math.abs(value - again[i]!) <= 2e-6 * value);
    });
}
