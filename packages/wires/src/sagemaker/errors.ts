/** Errors ⇄ exceptions of the two planes: one table, both directions. */
import {
  asLoopwrightError,
  type ErrorCode,
  type ErrorDetails,
  errorCatalogue,
  LoopwrightError,
} from '@loopwright/protocol';
import { isObject, type JsonObject, parseJson } from '../checks.js';
import { controlContentType, headers } from './routes.js';

export type Plane = 'control' | 'runtime';

/** Exception name and HTTP status. */
type Exception = readonly [name: string, status: number];

const invalid = { runtime: ['ValidationException', 400], control: ['ValidationException', 400] } as const;
const missing = { runtime: ['ResourceNotFoundException', 404], control: ['ResourceNotFound', 400] } as const;
const conflict = { runtime: ['ConflictException', 409], control: ['ConflictException', 400] } as const;
const denied = { runtime: ['AccessDeniedException', 403], control: ['AccessDeniedException', 403] } as const;
const throttled = { runtime: ['ThrottlingException', 429], control: ['ThrottlingException', 429] } as const;
const slow = { runtime: ['RequestTimeoutException', 408], control: ['RequestTimeoutException', 408] } as const;
const closing = { runtime: ['ServiceUnavailable', 503], control: ['ServiceUnavailable', 503] } as const;
const fault = { runtime: ['InternalServerException', 500], control: ['InternalFailure', 500] } as const;
/** Faults that a client of the API must not repeat: a name and a status that it does not retry. */
const noSpace = {
  runtime: ['InsufficientStorageException', 507],
  control: ['InsufficientStorageException', 507],
} as const;

/** Exceptions by error code. A new code needs a row here: the type demands it. */
const exceptions = {
  invalid_argument: invalid,
  context_length_exceeded: invalid,
  memory_limit_exceeded: invalid,
  device_unavailable: invalid,
  unsupported_model: invalid,
  model_invalid: invalid,
  sequence_conflict: invalid,
  gradient_incomplete: invalid,
  checkpoint_mismatch: invalid,
  unauthenticated: denied,
  model_gated: denied,
  unknown_model: missing,
  unknown_session: missing,
  unknown_operation: missing,
  unknown_version: missing,
  not_found: missing,
  session_exists: { runtime: ['ConflictException', 409], control: ['ResourceInUse', 400] },
  session_not_active: conflict,
  session_has_trainer: conflict,
  invalid_transition: { runtime: ['ConflictException', 409], control: ['ValidationException', 400] },
  cancelled: conflict,
  payload_too_large: { runtime: ['ValidationException', 413], control: ['ValidationException', 413] },
  limit_exceeded: throttled,
  quota_exceeded: { runtime: ['ResourceLimitExceeded', 400], control: ['ResourceLimitExceeded', 400] },
  request_timeout: slow,
  shutting_down: closing,
  internal: fault,
  blob_damaged: invalid,
  engine_failed: fault,
  out_of_memory: noSpace,
  disk_full: noSpace,
  port_in_use: fault,
  data_dir_in_use: fault,
  run_in_use: fault,
  unsupported_host: fault,
  timeout: fault,
  connection_lost: fault,
  operation_failed: invalid,
  grader_failed: fault,
  approval_refused: fault,
  guard_stopped: fault,
  grader_gate_failed: fault,
  rollouts_failed: fault,
  grader_timeout: fault,
  sandbox_failed: fault,
  row_invalid: invalid,
  data_invalid: invalid,
  loss_function_failed: fault,
  operation_skipped: conflict,
  disposed: conflict,
} as const satisfies Record<ErrorCode, Record<Plane, Exception>>;

/** Seconds to wait before trying again, when an error that asks for it says nothing else. */
const defaultRetryAfterSeconds = 1;

export interface EncodedError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject;
}

/**
 * An error as a response. Beside what the API promises, the body carries `code`, `details` and `request_id`, from which our client
 * rebuilds the same error. `details.retryAfterMs` of throttling and closing becomes `Retry-After` (1 s when it is not given).
 */
export function encodeError(
  cause: unknown,
  { plane, requestId }: { readonly plane: Plane; readonly requestId?: string },
): EncodedError {
  const error = asLoopwrightError(cause);
  const [type, status] = exceptions[error.code][plane];
  const wire = error.toJSON();
  const message = wire.message.slice(0, 1024);
  const id = requestId ?? wire.request_id;
  const { retryAfterMs } = error.details;
  const seconds = typeof retryAfterMs === 'number' ? Math.ceil(retryAfterMs / 1000) : defaultRetryAfterSeconds;
  return {
    status,
    headers: {
      'content-type': plane === 'control' ? controlContentType : 'application/json',
      [headers.errorType]: type,
      ...(id === undefined ? {} : { [headers.requestId]: id }),
      ...(status === 429 || status === 503 ? { 'retry-after': String(Math.max(1, seconds)) } : {}),
    },
    body: {
      __type: type,
      ...(plane === 'control' ? { Message: message } : {}),
      message,
      code: error.code,
      details: error.details,
      ...(id === undefined ? {} : { request_id: id }),
    },
  };
}

/** Codes for exceptions of servers that send no code of ours. */
const codesByException: Readonly<Record<string, ErrorCode>> = {
  ValidationException: 'invalid_argument',
  ConflictException: 'session_not_active',
  ResourceNotFoundException: 'not_found',
  ResourceNotFound: 'not_found',
  ResourceInUse: 'session_exists',
  ResourceLimitExceeded: 'quota_exceeded',
  ThrottlingException: 'limit_exceeded',
  InternalServerException: 'internal',
  InternalFailure: 'internal',
  AccessDeniedException: 'unauthenticated',
  AccessDenied: 'unauthenticated',
};

const codesByStatus: Readonly<Record<number, ErrorCode>> = {
  400: 'invalid_argument',
  401: 'unauthenticated',
  403: 'unauthenticated',
  404: 'not_found',
  409: 'session_not_active',
  413: 'payload_too_large',
  429: 'limit_exceeded',
  502: 'connection_lost',
  503: 'connection_lost',
  504: 'timeout',
};

export interface ErrorResponse {
  readonly status: number;
  readonly header: (name: string) => string | null;
  /** The body as text; it need not be JSON. */
  readonly body: string;
}

/** Rebuilds the error of a response that is not a success; `details.retryAfterMs` holds what `Retry-After` said. */
export function decodeError({ status, header, body }: ErrorResponse): LoopwrightError {
  const wire = tryObject(body);
  const type = (header(headers.errorType) ?? text(wire.__type) ?? '').replace(/^.*#/, '').replace(/:.*$/, '');
  const own = text(wire.code);
  const code =
    own !== undefined && own in errorCatalogue
      ? (own as ErrorCode) // a key of the catalogue, tested beside
      : (codesByException[type] ?? codesByStatus[status] ?? 'internal');
  const retryAfter = Number(header('retry-after') ?? Number.NaN);
  const requestId = text(wire.request_id) ?? header(headers.requestId) ?? undefined;
  return new LoopwrightError({
    code,
    message: text(wire.message) ?? text(wire.Message) ?? `the server answered with HTTP status ${status}`,
    details: {
      ...(isObject(wire.details) ? (wire.details as ErrorDetails) : {}), // an open record of the server's
      ...(Number.isFinite(retryAfter) ? { retryAfterMs: retryAfter * 1000 } : {}),
      ...(own === undefined ? { httpStatus: status } : {}),
    },
    ...(requestId === undefined ? {} : { requestId }),
  });
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function tryObject(body: string): JsonObject {
  try {
    const value = parseJson(body);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
