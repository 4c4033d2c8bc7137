/** Bodies of the two result routes around their payload: status, failure, and our `loopwright` member. */
import {
  asLoopwrightError,
  complaint,
  type ErrorDetails,
  LoopwrightError,
  type OperationStatus,
  operationStatuses,
} from '@loopwright/protocol';
import { describeValue, isObject, type JsonObject, objectAt } from '../checks.js';

/** Where an operation that has not ended stands; travels as the extension member `loopwright`. */
export interface OperationProgress {
  readonly state: 'queued' | 'running';
  /** Why it waits, in words for people: `operation 3 before it`, `the base model to load`. */
  readonly waitingFor?: string;
  /** Operations before it. */
  readonly position?: number;
}

/** What a result request tells, `R` being the decoded result. */
export type OperationOutcome<R> =
  | { readonly status: 'Pending' | 'InProgress'; readonly progress: OperationProgress }
  | { readonly status: 'Completed'; readonly result: R }
  | { readonly status: 'Failed' | 'Skipped'; readonly error: LoopwrightError };

export interface ResultBody {
  readonly status: OperationStatus;
  readonly operationResult?: JsonObject;
  readonly errorDetails?: string;
  readonly tokenUsage?: { readonly trainingTokens: number };
  readonly loopwright?: JsonObject;
}

export function encodeUnfinished(status: 'Pending' | 'InProgress', progress: OperationProgress): ResultBody {
  return { status, loopwright: { ...progress } };
}

/** `errorDetails` belongs to Failed alone; the whole error travels in `loopwright.error` with both. */
export function encodeFailure(status: 'Failed' | 'Skipped', cause: unknown): ResultBody {
  const error = asLoopwrightError(cause, 'operation_failed');
  return {
    status,
    ...(status === 'Failed' ? { errorDetails: error.message } : {}),
    loopwright: { error: error.toJSON() },
  };
}

function decodeProgress(status: 'Pending' | 'InProgress', value: unknown): OperationProgress {
  const fallback = status === 'Pending' ? 'queued' : 'running';
  if (!isObject(value)) return { state: fallback };
  return {
    state: value.state === 'queued' || value.state === 'running' ? value.state : fallback,
    ...(typeof value.waitingFor === 'string' ? { waitingFor: value.waitingFor } : {}),
    ...(typeof value.position === 'number' ? { position: value.position } : {}),
  };
}

function decodeFailure(status: 'Failed' | 'Skipped', body: JsonObject): LoopwrightError {
  const wire = isObject(body.loopwright) ? body.loopwright.error : undefined;
  if (isObject(wire) && typeof wire.code === 'string' && typeof wire.message === 'string') {
    return LoopwrightError.fromJSON({
      code: wire.code,
      message: wire.message,
      ...(isObject(wire.details) ? { details: wire.details as ErrorDetails } : {}), // an open record of the server's
      ...(typeof wire.request_id === 'string' ? { request_id: wire.request_id } : {}),
    });
  }
  const said = typeof body.errorDetails === 'string' ? body.errorDetails : undefined;
  return status === 'Failed'
    ? new LoopwrightError({ code: 'operation_failed', message: said ?? 'the operation failed without saying why' })
    : new LoopwrightError({ code: 'operation_skipped', message: said ?? 'the session ended before the operation ran' });
}

/** The body's status and what goes with it; `decode` reads the `operationResult` of Completed. Unknown statuses count as running. */
export function decodeOutcome<R>(value: unknown, decode: (operationResult: JsonObject) => R): OperationOutcome<R> {
  const body = objectAt(value, 'body');
  const status = operationStatuses.find((known) => known === body.status) ?? 'InProgress';
  switch (status) {
    case 'Pending':
    case 'InProgress':
      return { status, progress: decodeProgress(status, body.loopwright) };
    case 'Failed':
    case 'Skipped':
      return { status, error: decodeFailure(status, body) };
    case 'Completed':
      return { status, result: decode(objectAt(body.operationResult, 'operationResult')) };
    default:
      return status satisfies never;
  }
}

/** The member of `operationResult` that equals the submitted kind. */
export function resultMember(operationResult: JsonObject, member: string): JsonObject {
  const names = Object.keys(operationResult);
  if (names.length !== 1 || names[0] !== member) {
    throw complaint({
      code: 'internal',
      field: 'operationResult',
      expected: `the one member ${member}`,
      got: describeValue(names),
    });
  }
  return objectAt(operationResult[member], `operationResult.${member}`);
}
