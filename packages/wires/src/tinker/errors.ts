/** Errors of this wire: statuses that its SDK doesn't repeat for minutes unless that can help, and failures of accepted work. */
import { asLoopwrightError, type ErrorCode, type LoopwrightError } from '@loopwright/protocol';
import type { JsonObject } from '../checks.js';

/** Statuses other than those of the catalogue. */
const statuses: Partial<Record<ErrorCode, number>> = {
  sequence_conflict: 409,
  // The SDK repeats 409, 429 and what is above 499 for five minutes, which helps none of these.
  session_exists: 400,
  session_not_active: 400,
  session_has_trainer: 400,
  invalid_transition: 400,
  operation_skipped: 400,
  cancelled: 400,
  quota_exceeded: 400,
  out_of_memory: 400,
  disk_full: 400,
  disposed: 400,
  operation_failed: 400,
};

export interface EncodedError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject;
}

/** What a request is refused with; `detail` is what the SDK shows. */
export function encodeError(cause: unknown, { requestId }: { readonly requestId?: string } = {}): EncodedError {
  const error = asLoopwrightError(cause);
  const status = statuses[error.code] ?? error.status;
  const { retryAfterMs } = error.details;
  const seconds = typeof retryAfterMs === 'number' ? Math.max(1, Math.ceil(retryAfterMs / 1000)) : 1;
  return {
    status,
    headers: { 'content-type': 'application/json', ...(status === 429 ? { 'retry-after': String(seconds) } : {}) },
    body: {
      detail: wordsOf(error),
      code: error.code,
      details: error.details,
      ...(requestId === undefined ? {} : { request_id: requestId }),
    },
  };
}

/** What the result of accepted work is when it failed. */
export function encodeFailure(cause: unknown): { readonly error: string; readonly category: 'user' | 'server' } {
  const error = asLoopwrightError(cause, 'operation_failed');
  return { error: wordsOf(error), category: error.status < 500 ? 'user' : 'server' };
}

/** Fields that this wire spells otherwise. */
const fields: Readonly<Record<string, string>> = { baseModel: 'base_model' };

/** Code and message; clients of this wire know the words that it has for a context that is too short. */
function wordsOf({ code, message, details }: LoopwrightError): string {
  const { field = '' } = details;
  const spelled = Object.hasOwn(fields, field) ? fields[field] : undefined;
  const begins = spelled !== undefined && message.startsWith(`${field}: `);
  return `${code}: ${begins ? spelled + message.slice(field.length) : message}`;
}
