/** The error of a SandboxFusion server that did not run a program. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';

export function serverFailed(got: string, cause?: unknown): LoopwrightError {
  return complaint({
    code: 'sandbox_failed',
    field: 'url',
    expected: 'a SandboxFusion server that runs programs',
    got,
    remedy: 'check the address, and the log of the server',
    cause,
  });
}
