/** Why a session does not take an operation. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';

export function notActive(name: string, status: string): LoopwrightError {
  return complaint({
    code: 'session_not_active',
    message: `Training session ${name} is in state ${status}; it must be Running or Blocked`,
    field: 'session',
    expected: 'Running or Blocked',
    got: status,
  });
}

export function hasTrainer(name: string): LoopwrightError {
  return complaint({
    code: 'session_has_trainer',
    field: 'session',
    expected: 'one training client per session',
    got: `a second one for ${name}`,
  });
}
