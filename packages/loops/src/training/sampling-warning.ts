/** Sampling that draws from another policy than the one that is trained. */

/**
 * A line where answers aren't drawn at temperature 1: logprobs and gradients are those of temperature 1, so every ratio is 1 at equal weights and nothing else would show it.
 */
export function samplingWarnings({ temperature }: { readonly temperature: number }): readonly string[] {
  if (temperature === 1) return [];
  return [
    `guard/sampling_policy: answers are drawn at temperature ${temperature}, but logprobs and gradients are those of temperature 1; the ratio does not correct it, so the gradient is biased`,
  ];
}
