/** A reason that is recorded because somebody goes on against what was found. */
import { complaint } from './errors.js';

/** A word is no reason. */
const shortestReason = 10;

/** @throws `invalid_argument` for fewer than ten characters */
export function requireReason(
  reason: unknown,
  { field, remedy }: { readonly field: string; readonly remedy: string },
): asserts reason is string {
  if (typeof reason === 'string' && reason.trim().length >= shortestReason) return;
  throw complaint({
    field,
    expected: `the reason in ${shortestReason} characters or more`,
    got: typeof reason === 'string' ? `${reason.trim().length} characters` : typeof reason,
    remedy,
  });
}
