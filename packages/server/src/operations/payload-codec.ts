/** Operations and their results as bytes: what the log keeps. */
import { LoopwrightError, type Operation, type OperationResults, type OperationType } from '@loopwright/protocol';
import { decodeContainer, encodeContainer } from './container.js';

/** An operation as bytes; equal operations give equal bytes. */
export function encodeOperation(operation: Operation): Uint8Array {
  return encodeContainer({ kind: 'operation', operation });
}

/** @throws `internal` when the bytes hold something else */
export function decodeOperation(bytes: Uint8Array): Operation {
  return member(bytes, 'operation') as Operation; // true: written by encodeOperation, and the blob's hash was checked
}

/** The result of an operation as bytes. */
export function encodeResult<T extends OperationType>(type: T, result: OperationResults[T]): Uint8Array {
  return encodeContainer({ kind: 'result', type, result });
}

/** @throws `internal` when the bytes hold something else */
export function decodeResult<T extends OperationType>(type: T, bytes: Uint8Array): OperationResults[T] {
  const found = member(bytes, 'result', type);
  return found as OperationResults[T]; // true: written by encodeResult for this type, and the blob's hash was checked
}

function member(bytes: Uint8Array, kind: 'operation' | 'result', type?: OperationType): unknown {
  const value = decodeContainer(bytes);
  const found: { kind?: unknown; type?: unknown; operation?: unknown; result?: unknown } =
    typeof value === 'object' && value !== null ? value : {};
  if (found.kind !== kind || (type !== undefined && found.type !== type)) {
    throw new LoopwrightError({
      code: 'internal',
      message: `stored operation data: expected ${kind} ${type ?? ''}, got ${String(found.kind)} ${String(found.type ?? '')}`,
    });
  }
  return found[kind];
}
