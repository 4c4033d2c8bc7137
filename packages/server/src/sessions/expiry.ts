/** When a session has lived long enough, and how that is said. */
import { LoopwrightError } from '@loopwright/protocol';
import type { SessionRecord } from './session-record.js';
import type { SessionLimits } from './session-service.js';

/** The reason why a session expires now; undefined while it lives. `hasWork` is asked only where it matters. */
export async function whyExpired(
  { createdAtMs, activeAtMs }: Pick<SessionRecord, 'createdAtMs' | 'activeAtMs'>,
  { idleTimeoutMs, lifetimeMs }: Pick<SessionLimits, 'idleTimeoutMs' | 'lifetimeMs'>,
  nowMs: number,
  hasWork: () => Promise<boolean>,
): Promise<LoopwrightError | undefined> {
  if (lifetimeMs !== null && nowMs - createdAtMs > lifetimeMs) {
    return expired(`the session is older than the ${span(lifetimeMs)} that this server lets sessions live`);
  }
  if (idleTimeoutMs === null || nowMs - activeAtMs <= idleTimeoutMs || (await hasWork())) return undefined;
  return expired(`the session had no operation for more than the ${span(idleTimeoutMs)} that this server allows`);
}

function expired(message: string): LoopwrightError {
  return new LoopwrightError({ code: 'timeout', message });
}

function span(ms: number): string {
  return ms % 60_000 === 0 ? `${ms / 60_000} min` : `${ms / 1000} s`;
}
