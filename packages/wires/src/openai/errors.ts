/** Errors in OpenAI's shape, with the headers by which its SDKs decide whether to try again. */
import { asLoopwrightError, type ErrorCode, type LoopwrightError } from '@loopwright/protocol';
import type { JsonObject } from '../checks.js';

/** `type` and `code` as OpenAI's API spells them, where it has a word; else the code is ours. */
type Spelling = readonly [type: string, code?: string];

const invalid = ['invalid_request_error'] as const;
const fault = ['server_error'] as const;
/** Waiting helps. */
const rate = ['requests', 'rate_limit_exceeded'] as const;
/** Waiting does not help: something must be given up or raised first. */
const budget = ['insufficient_quota', 'insufficient_quota'] as const;
/** The machine has no room for it; another request may fit. */
const capacity = ['server_error', 'no_capacity'] as const;

const spellings = {
  invalid_argument: invalid,
  context_length_exceeded: ['invalid_request_error', 'context_length_exceeded'],
  memory_limit_exceeded: invalid,
  device_unavailable: invalid,
  unsupported_model: invalid,
  model_invalid: invalid,
  sequence_conflict: invalid,
  gradient_incomplete: invalid,
  checkpoint_mismatch: invalid,
  unauthenticated: ['invalid_request_error', 'invalid_api_key'],
  model_gated: ['permission_error'],
  unknown_model: ['invalid_request_error', 'model_not_found'],
  unknown_session: ['invalid_request_error', 'model_not_found'],
  unknown_operation: invalid,
  unknown_version: ['invalid_request_error', 'model_not_found'],
  not_found: invalid,
  session_exists: invalid,
  session_not_active: invalid,
  session_has_trainer: invalid,
  invalid_transition: invalid,
  cancelled: invalid,
  payload_too_large: invalid,
  limit_exceeded: rate,
  quota_exceeded: budget,
  shutting_down: ['server_error', 'shutting_down'],
  loss_function_failed: invalid,
  request_timeout: invalid,
  internal: fault,
  blob_damaged: ['server_error'],
  engine_failed: fault,
  out_of_memory: capacity,
  disk_full: capacity,
  port_in_use: fault,
  data_dir_in_use: fault,
  run_in_use: fault,
  unsupported_host: fault,
  timeout: fault,
  connection_lost: fault,
  operation_failed: fault,
  grader_failed: fault,
  approval_refused: fault,
  guard_stopped: fault,
  grader_gate_failed: fault,
  rollouts_failed: fault,
  grader_timeout: fault,
  sandbox_failed: fault,
  row_invalid: invalid,
  data_invalid: invalid,
  operation_skipped: invalid,
  disposed: fault,
} as const satisfies Record<ErrorCode, Spelling>;

/** Seconds to wait before trying again, when an error that asks for it says nothing else. */
const defaultRetryAfterSeconds = 1;

export interface OpenAIError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { readonly error: JsonObject };
}

/**
 * An error as a response. `param` is the field as the request spells it; `loopwright` holds our code and details, which say what was
 * expected and what to do. `x-should-retry` says to the SDKs what our catalogue says: without it they repeat every 409, 429 and 5xx.
 */
export function encodeOpenAIError(cause: unknown, { requestId }: { readonly requestId?: string } = {}): OpenAIError {
  const error = asLoopwrightError(cause);
  return {
    status: error.status,
    headers: {
      'content-type': 'application/json',
      'x-should-retry': String(error.retryable),
      ...((error.status === 429 || error.status === 503) && error.retryable
        ? { 'retry-after': retryAfter(error) }
        : {}),
    },
    body: errorEvent(error, requestId),
  };
}

/** The body alone: also the event that ends a stream in which something went wrong. */
export function errorEvent(error: LoopwrightError, requestId?: string): { readonly error: JsonObject } {
  const [type, code = error.code]: Spelling = spellings[error.code];
  const { field } = error.details;
  const id = requestId ?? error.requestId;
  return {
    error: {
      message: error.message,
      type,
      param: field === undefined ? null : field.replace(/^body\./, ''),
      code,
      loopwright: {
        code: error.code,
        details: error.details,
        ...(id === undefined ? {} : { request_id: id }),
      },
    },
  };
}

function retryAfter({ details }: LoopwrightError): string {
  const { retryAfterMs } = details;
  const seconds = typeof retryAfterMs === 'number' ? Math.ceil(retryAfterMs / 1000) : defaultRetryAfterSeconds;
  return String(Math.max(1, seconds));
}
