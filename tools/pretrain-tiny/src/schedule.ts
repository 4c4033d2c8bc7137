/** Learning rates over a run. */

export interface Schedule {
  readonly steps: number;
  readonly warmupSteps: number;
  /** Reached at the end of the warm-up. */
  readonly peak: number;
  /** Reached at the last step. */
  readonly final: number;
}

/** Linear warm-up, then half a cosine. @param step from 1 to `steps` */
export function learningRateAt({ steps, warmupSteps, peak, final }: Schedule, step: number): number {
  if (step <= warmupSteps) return (peak * step) / warmupSteps;
  const progress = (step - warmupSteps) / (steps - warmupSteps);
  return final + ((peak - final) * (1 + Math.cos(Math.PI * progress))) / 2;
}
