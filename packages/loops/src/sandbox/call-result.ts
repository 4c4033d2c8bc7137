/** What a program answered to a call, read with care. */
import type { CallResult, ProgramError } from './sandbox.js';
import { decodeValue } from './values.js';

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** Of what the program says of itself. */
export function errorOf(error: unknown): ProgramError {
  const { type, message } = isObject(error) ? error : {};
  return { type: typeof type === 'string' ? type : 'Error', message: typeof message === 'string' ? message : '' };
}

export function callResultOf(result: unknown): CallResult {
  if (isObject(result) && 'value' in result) {
    try {
      return { status: 'ok', value: decodeValue(result.value) };
    } catch (error) {
      return {
        status: 'error',
        error: { type: 'MalformedValue', message: error instanceof Error ? error.message : '' },
      };
    }
  }
  return { status: 'error', error: errorOf(isObject(result) ? result.error : undefined) };
}
