/** What grading costs a step. */
import { mean } from '../statistics/advantages.js';
import type { GraderSpeed } from './words.js';

export interface SpeedOptions {
  readonly aloneMs: readonly number[];
  readonly together: { readonly calls: number; readonly ms: number };
  readonly concurrency: number;
  readonly callsPerStep: number;
  readonly stepSeconds?: number | undefined;
}

/** A share of 10 % of the whole step is a ninth of the rest of it. */
const restPerGrading = 9;

/** Percentiles are by nearest rank: p95 of 40 calls is the 38th. */
export function graderSpeed({ aloneMs, together, concurrency, callsPerStep, stepSeconds }: SpeedOptions): GraderSpeed {
  const sorted = aloneMs.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  const meanMs = sorted.length === 0 ? 0 : mean(sorted);
  const aloneSeconds = (callsPerStep * meanMs) / 1000;
  const togetherSeconds = together.calls === 0 ? undefined : (callsPerStep * together.ms) / together.calls / 1000;
  return {
    alone: { calls: sorted.length, p50Ms: at(0.5), p95Ms: at(0.95), meanMs },
    ...(togetherSeconds === undefined
      ? {}
      : { together: { calls: together.calls, concurrency, callsPerSecond: (together.calls / together.ms) * 1000 } }),
    callsPerStep,
    secondsAdded: {
      alone: aloneSeconds,
      ...(togetherSeconds === undefined ? {} : { together: togetherSeconds }),
    },
    secondsFor10Percent: (togetherSeconds ?? aloneSeconds) * restPerGrading,
    ...(stepSeconds === undefined
      ? {}
      : {
          parallelism: { stepSeconds, needed: Math.max(1, Math.ceil((aloneSeconds * restPerGrading) / stepSeconds)) },
        }),
  };
}
