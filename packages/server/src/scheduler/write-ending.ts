/** Writing endings down: of what ran, whatever the disk says, and of what a session leaves open at its end. */
import { asLoopwrightError, LoopwrightError, type TokenUsage } from '@loopwright/protocol';
import type { Logger } from 'pino';
import type { Clock } from '../clock.js';
import type { Ending, OperationLog, SessionEffects } from '../operations/operation-log.js';
import type { OperationRecord } from '../operations/operation-record.js';
import type { SessionRecord } from '../sessions/session-record.js';
import { cancelled, failureEffects, notRun, type SessionEnd } from './endings.js';
import type { Execution } from './execute.js';
import type { RunningOperations } from './running-operations.js';

/** What came of running an operation. */
export type Outcome = Execution | LoopwrightError;

export interface WriteEnding {
  readonly session: SessionRecord;
  readonly record: OperationRecord;
  readonly startedAtMs: number;
  readonly engineMs: number | null;
  /** What a listener was told of it; charged when it is cancelled. */
  readonly told: TokenUsage | undefined;
  readonly outcome: Outcome;
  readonly log: OperationLog;
  readonly clock: Clock;
  readonly logger: Logger;
  /** True once nobody is to write any more. */
  readonly isOver: () => boolean;
  /** A result could not be kept, so that the engine is ahead of the log. */
  readonly onLostResult: () => void;
}

/** Between attempts to write down a failure when the disk is full, or anything while another program has the database locked. */
const retryMs = 1000;

/**
 * A result that can't be kept did not happen: the operation fails instead. A failure that can't be written either is tried again until it can,
 * as is everything while another program has the database locked.
 *
 * @returns what the ending changed in the session; undefined when the session was let go meanwhile
 */
export async function writeEnding(options: WriteEnding): Promise<SessionEffects | undefined> {
  const { session, record, startedAtMs, engineMs, told, log, clock, logger, isOver, onLostResult } = options;
  let { outcome } = options;
  for (;;) {
    const { ending, effects, alongside } = endingOf(record, session, outcome, told);
    try {
      await log.finish({ session, record, ending, startedAtMs, engineMs, effects, ...(alongside && { alongside }) });
      logger.debug({ operation: record.id, type: record.type, status: ending.status }, 'operation ended');
      return effects;
    } catch (cause) {
      if (isOver()) return undefined;
      const error = asLoopwrightError(cause);
      logger.error({ operation: record.id, code: error.code }, 'an ending could not be stored');
      if (ending.status === 'Completed' && error.code !== 'limit_exceeded') {
        onLostResult();
        outcome = error;
        continue;
      }
      await new Promise<void>((resolve) => {
        clock.after(retryMs, resolve);
      });
      if (isOver()) return undefined;
    }
  }
}

interface EndingParts {
  readonly ending: Ending;
  readonly effects: SessionEffects;
  readonly alongside?: Execution['alongside'];
}

function endingOf(
  record: OperationRecord,
  session: SessionRecord,
  outcome: Outcome,
  told: TokenUsage | undefined,
): EndingParts {
  if (LoopwrightError.isInstance(outcome)) {
    const effects = failureEffects(record, session.policy, outcome.code);
    const usage = outcome.code === 'cancelled' && told !== undefined ? { usage: told } : {};
    return { ending: { status: 'Failed', error: outcome, ...usage }, effects };
  }
  const { done, effects: own, alongside } = outcome;
  const effects = record.kind === 'training' ? { ...own, nextSequenceNumber: record.sequenceNumber + 1 } : own;
  return { ending: { status: 'Completed', done }, effects, alongside };
}

export interface SkipOpen {
  readonly session: SessionRecord;
  readonly log: OperationLog;
  readonly running: RunningOperations;
  /** How the session ends. */
  readonly to: SessionEnd;
}

/** Training operations that did not run are Skipped; sampling ones know no such status and fail. */
export async function skipOpen({ session, log, running, to }: SkipOpen): Promise<void> {
  for (const record of await log.ofSession(session.id, { open: true })) {
    const ran = running.get(record.id);
    const status = record.kind === 'training' && ran === undefined ? 'Skipped' : 'Failed';
    const error = ran === undefined ? notRun(to) : cancelled('the session ended while the operation ran');
    const startedAtMs = ran?.startedAtMs ?? null;
    await log.finish({ session, record, ending: { status, error }, startedAtMs, effects: {} });
  }
}
