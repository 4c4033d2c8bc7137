/** What sessions may be made of, and which states follow which. */
import {
  complaint,
  LoopwrightError,
  type SessionStatus,
  type SessionTraining,
  targetModules,
} from '@loopwright/protocol';
import type { SamplingRequest } from '../operations/resolve.js';

/** @throws `invalid_argument` naming the field */
export function checkTraining(training: SessionTraining): void {
  if (training.type !== 'lora') return;
  const { rank, alpha } = training;
  if (!Number.isInteger(rank) || rank < 1 || rank > 256) {
    throw complaint({ field: 'rank', expected: 'an integer from 1 to 256', got: String(rank) });
  }
  if (!Number.isFinite(alpha) || alpha <= 0) {
    throw complaint({ field: 'alpha', expected: 'a number above 0', got: String(alpha) });
  }
  if (training.targetModules.length === 0) {
    throw complaint({ field: 'targetModules', expected: `at least one of ${targetModules.join(', ')}`, got: 'none' });
  }
  const unknown = training.targetModules.find((name) => !targetModules.includes(name));
  if (unknown !== undefined) {
    throw complaint({
      field: 'targetModules',
      expected: `names among ${targetModules.join(', ')}`,
      got: String(unknown),
    });
  }
}

export function invalidTransition(from: SessionStatus, to: SessionStatus): LoopwrightError {
  const isDeletion = to === 'Deleting';
  return complaint({
    code: 'invalid_transition',
    message: `invalid session state transition from ${from} to ${to}`,
    field: 'session',
    expected: isDeletion ? 'an ended session' : 'a live session',
    got: from,
    remedy: isDeletion ? 'stop it first' : 'nothing is to be done: it has ended, or is about to',
  });
}

/** Refusals of the content of a submission; others (state, conflict, storage) leave the number free for a repetition. */
export function usesNumberUp(error: unknown): boolean {
  if (!LoopwrightError.isInstance(error)) return false;
  const codes: readonly string[] = [
    'invalid_argument',
    'context_length_exceeded',
    'unknown_version',
    'checkpoint_mismatch',
  ];
  return codes.includes(error.code);
}

/** Tokens that a sampling request reads. */
export function promptLength(request: SamplingRequest): number {
  return request.type === 'load-weights' ? 0 : request.prompt.length;
}
