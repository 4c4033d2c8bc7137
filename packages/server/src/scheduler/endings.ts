/** Endings other than a result: their errors, and what they mean for the session. */
import { complaint, type ErrorCode, LoopwrightError } from '@loopwright/protocol';
import type { SessionEffects } from '../operations/operation-log.js';
import type { OperationRecord } from '../operations/operation-record.js';
import type { WirePolicy } from '../sessions/session-record.js';

/** How sessions end. */
export type SessionEnd = 'Stopped' | 'Expired' | 'Failed';

export function cancelled(message: string): LoopwrightError {
  return new LoopwrightError({ code: 'cancelled', message });
}

export function notRun(to: SessionEnd): LoopwrightError {
  const message = `the session ended (${to}) before the operation ran`;
  return new LoopwrightError({ code: 'operation_skipped', message });
}

export function gradientIncomplete(): LoopwrightError {
  return complaint({
    code: 'gradient_incomplete',
    field: 'gradient',
    expected: 'every forwardBackward since the last step to have completed',
    got: 'one that failed or was cancelled',
    remedy: 'nothing was changed and the gradient is cleared: repeat the passes, then the step',
  });
}

/** What the failure of an operation changes in its session. */
export function failureEffects(record: OperationRecord, policy: WirePolicy, code?: ErrorCode): SessionEffects {
  if (record.kind !== 'training') return {};
  const turn = { nextSequenceNumber: record.sequenceNumber + 1 };
  if (code === 'gradient_incomplete') return { ...turn, gradientIncomplete: false };
  const marks = record.type === 'forward-backward' && policy.incompleteGradient === 'fail-next-step';
  return marks ? { ...turn, gradientIncomplete: true } : turn;
}

/** A step that fails drops the gradient when it was incomplete, and when its norm is not finite; other failures leave it. */
export function dropsGradient(type: OperationRecord['type'], code: ErrorCode): boolean {
  return type === 'optim-step' && (code === 'gradient_incomplete' || code === 'operation_failed');
}
