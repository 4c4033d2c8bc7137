/** Errors over the wire: exception names and statuses for others, the same error again for our client. */
import { complaint, type ErrorCode, errorCatalogue, LoopwrightError } from '@loopwright/protocol';
import { expect, test } from 'vitest';
import { decodeError, encodeError, type Plane } from './errors.js';
import { decodeOutcome, encodeFailure, encodeUnfinished } from './operation-result.js';

const codes = Object.keys(errorCatalogue) as ErrorCode[];

function roundTrip(error: LoopwrightError, plane: Plane): LoopwrightError {
  const { status, headers, body } = encodeError(error, { plane, requestId: 'r-1' });
  return decodeError({ status, header: (name) => headers[name] ?? null, body: JSON.stringify(body) });
}

test.each(codes)('%s comes back as itself from both planes', (code) => {
  const error = new LoopwrightError({ code, message: 'why', details: { field: 'a.b', retryAfterMs: 3000 } });
  for (const plane of ['control', 'runtime'] as const) {
    const back = roundTrip(error, plane);
    expect(back.code).toBe(code);
    expect(back.message).toBe('why');
    expect(back.details).toMatchObject({ field: 'a.b', retryAfterMs: 3000 });
    expect(back.requestId).toBe('r-1');
  }
});

test.each<[ErrorCode, Plane, string, number]>([
  ['invalid_argument', 'runtime', 'ValidationException', 400],
  ['invalid_argument', 'control', 'ValidationException', 400],
  ['memory_limit_exceeded', 'runtime', 'ValidationException', 400],
  ['device_unavailable', 'control', 'ValidationException', 400],
  ['unknown_session', 'runtime', 'ResourceNotFoundException', 404],
  ['unknown_session', 'control', 'ResourceNotFound', 400],
  ['session_exists', 'control', 'ResourceInUse', 400],
  ['session_not_active', 'runtime', 'ConflictException', 409],
  ['invalid_transition', 'control', 'ValidationException', 400],
  ['quota_exceeded', 'control', 'ResourceLimitExceeded', 400],
  ['limit_exceeded', 'runtime', 'ThrottlingException', 429],
  ['internal', 'runtime', 'InternalServerException', 500],
  ['unauthenticated', 'runtime', 'AccessDeniedException', 403],
])('%s on the %s plane is %s with status %i', (code, plane, type, status) => {
  const encoded = encodeError(new LoopwrightError({ code, message: 'why' }), { plane });
  expect(encoded.status).toBe(status);
  expect(encoded.headers['x-amzn-errortype']).toBe(type);
  expect(encoded.body).toMatchObject({ __type: type, message: 'why' });
  if (plane === 'control') expect(encoded.body.Message).toBe('why');
});

test('throttling says when to come back, in whole seconds', () => {
  const after = (details: Record<string, unknown>) =>
    encodeError(new LoopwrightError({ code: 'limit_exceeded', message: 'full', details }), { plane: 'runtime' })
      .headers['retry-after'];
  expect(after({ retryAfterMs: 1200 })).toBe('2');
  expect(after({})).toBe('1');
  expect(encodeError(new Error('x'), { plane: 'runtime' }).headers).not.toHaveProperty('retry-after');
});

test('an error of a server that sends no code of ours is known by its exception, else by its status', () => {
  const decode = (status: number, type: string | null, body: string) =>
    decodeError({ status, header: (name) => (name === 'x-amzn-errortype' ? type : null), body }).code;
  expect(decode(400, null, '{"__type":"com.amazon#ResourceInUse","Message":"taken"}')).toBe('session_exists');
  expect(decode(429, 'ThrottlingException:http://x', '{"message":"slow"}')).toBe('limit_exceeded');
  expect(decode(502, null, '<html>')).toBe('connection_lost');
  expect(decode(418, null, '')).toBe('internal');
});

const through = (body: unknown) => decodeOutcome(JSON.parse(JSON.stringify(body)), () => 'result');

test('a failed operation gives its error back, with text for clients that know no codes', () => {
  const body = encodeFailure('Failed', complaint({ code: 'gradient_incomplete', field: 'f', expected: 'e', got: 'g' }));
  expect(body.errorDetails).toBe('f: expected e, got g; repeat the passes, then the step');
  expect(through(body)).toMatchObject({
    status: 'Failed',
    error: { code: 'gradient_incomplete', details: { field: 'f' } },
  });
  expect(through({ status: 'Failed', errorDetails: 'why' })).toMatchObject({
    error: { code: 'operation_failed', message: 'why' },
  });
});

test('a skipped operation carries no errorDetails', () => {
  const body = encodeFailure('Skipped', new LoopwrightError({ code: 'operation_skipped', message: 'stopped' }));
  expect(body).not.toHaveProperty('errorDetails');
  expect(through(body)).toMatchObject({ status: 'Skipped', error: { code: 'operation_skipped' } });
});

test('an operation that waits says why, and an unknown status counts as running', () => {
  const body = encodeUnfinished('Pending', { state: 'queued', waitingFor: 'operation 3', position: 2 });
  expect(through(body)).toEqual({
    status: 'Pending',
    progress: { state: 'queued', waitingFor: 'operation 3', position: 2 },
  });
  expect(through({ status: 'Pondering' })).toEqual({ status: 'InProgress', progress: { state: 'running' } });
});
