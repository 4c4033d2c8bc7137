/** When a request is tried again, and after how long. */
import type { LoopwrightError } from '@loopwright/protocol';

export interface RetryPolicy {
  /** How long a request may be tried from its first failure on, waits included. */
  readonly budgetMs: number;
  /** Attempts at most that the server answers with a fault (500); refusals for load and lost connections are bounded by time alone. */
  readonly maxFaults: number;
}

/** Training, sampling and the beginning of sessions: long enough for a server to restart. */
export const patientPolicy: RetryPolicy = { budgetMs: 300_000, maxFaults: 4 };
/** Everything that a person waits for. */
export const briefPolicy: RetryPolicy = { budgetMs: 15_000, maxFaults: 3 };

/**
 * Whom nobody has ever answered: the address is probably wrong, and a person should hear of it soon. Long enough for a server that
 * was started beside its client.
 */
export const firstContactPolicy: RetryPolicy = { budgetMs: 2_500, maxFaults: 3 };

const baseDelayMs = 250;
const maxDelayMs = 8_000;

export interface Attempts {
  /** Failures so far, this one included. */
  readonly failures: number;
  readonly faults: number;
  readonly elapsedMs: number;
}

/**
 * Milliseconds to wait before the next attempt; undefined when there is none.
 * Full jitter over an exponential; what the server asked for (`Retry-After`) is a lower bound.
 *
 * @param random a number from 0 to 1
 */
export function retryDelayMs(
  error: LoopwrightError,
  attempts: Attempts,
  policy: RetryPolicy,
  random: number,
): number | undefined {
  if (!error.retryable) return undefined;
  if (isFault(error) && attempts.faults >= policy.maxFaults) return undefined;
  const jittered = random * Math.min(maxDelayMs, baseDelayMs * 2 ** (attempts.failures - 1));
  const asked = error.details.retryAfterMs;
  const delayMs = typeof asked === 'number' ? asked + jittered : jittered;
  return attempts.elapsedMs + delayMs > policy.budgetMs ? undefined : delayMs;
}

export function isFault(error: LoopwrightError): boolean {
  return error.code === 'internal' || error.code === 'engine_failed';
}
