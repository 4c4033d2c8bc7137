/** What grading costs a step. */
import { mean } from '../statistics/advantages.js';
import type { CallOverlap, GraderSpeed } from './words.js';

export interface SpeedOptions {
  readonly aloneMs: readonly number[];
  readonly together: { readonly calls: number; readonly ms: number; readonly concurrency: number };
  readonly callsPerStep: number;
  readonly stepSeconds?: number | undefined;
}

/** A share of 10 % of the whole step is a ninth of the rest of it. */
const restPerGrading = 9;

/** Percentiles are by nearest rank: p95 of 40 calls is the 38th. */
export function graderSpeed({ aloneMs, together, callsPerStep, stepSeconds }: SpeedOptions): GraderSpeed {
  const sorted = aloneMs.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  const meanMs = sorted.length === 0 ? 0 : mean(sorted);
  const aloneSeconds = (callsPerStep * meanMs) / 1000;
  const { calls, ms, concurrency } = together;
  const togetherSeconds = calls === 0 ? undefined : (callsPerStep * ms) / calls / 1000;
  const overlap = overlapOf(aloneMs, together);
  const neededSpeedUp = (aloneSeconds * restPerGrading) / (stepSeconds ?? Number.POSITIVE_INFINITY);
  const needed = callsNeeded(neededSpeedUp, { overlap, callsPerStep });
  return {
    alone: { calls: sorted.length, p50Ms: at(0.5), p95Ms: at(0.95), meanMs },
    ...(togetherSeconds === undefined
      ? {}
      : {
          together: {
            ...{ calls, concurrency, callsPerSecond: (calls / ms) * 1000 },
            ...(overlap === undefined ? {} : { overlap }),
          },
        }),
    callsPerStep,
    secondsAdded: {
      alone: aloneSeconds,
      ...(togetherSeconds === undefined ? {} : { together: togetherSeconds }),
    },
    secondsFor10Percent: (togetherSeconds ?? aloneSeconds) * restPerGrading,
    ...(stepSeconds === undefined
      ? {}
      : { parallelism: { stepSeconds, neededSpeedUp, ...(needed === undefined ? {} : { needed }) } }),
  };
}

/** @see Karp and Flatt, "Measuring parallel processor performance", CACM 33(5), 1990: the serial share from a speed-up that was measured */
function overlapOf(
  aloneMs: readonly number[],
  { calls, ms, concurrency }: SpeedOptions['together'],
): CallOverlap | undefined {
  // The first call may have loaded what all others use.
  const warm = aloneMs.length > 1 ? aloneMs.slice(1) : aloneMs;
  if (calls === 0 || concurrency === 1 || warm.length === 0) return undefined;
  // No more than there were at once: beyond that it is a grader that remembers what it said.
  const speedUp = ms === 0 ? concurrency : Math.min(concurrency, (mean(warm) * calls) / ms);
  const serialShare = speedUp === 0 ? 1 : Math.min(1, (1 / speedUp - 1 / concurrency) / (1 - 1 / concurrency));
  return { speedUp, serialShare, isSerial: serialShare > 0.5 };
}

/** By Amdahl's law; a step has no more calls than it has. */
function callsNeeded(
  speedUp: number,
  { overlap, callsPerStep }: { readonly overlap: CallOverlap | undefined; readonly callsPerStep: number },
): number | undefined {
  if (speedUp <= 1) return 1;
  if (overlap === undefined || overlap.serialShare * speedUp >= 1) return undefined;
  const calls = (1 - overlap.serialShare) / (1 / speedUp - overlap.serialShare);
  const whole = Math.ceil(calls - 1e-9); // rounding is no call
  return whole > callsPerStep ? undefined : whole;
}
