/** Checks that the datum makers share: refusals name the field and what was wrong with it, never what it says. */
import { complaint } from '@loopwright/protocol';

/** Token ids as callers have them. */
export type Tokens = readonly number[] | Int32Array;

const largestId = 2 ** 31 - 1;

/** @throws `invalid_argument` when empty, or an entry is not a token id */
export function checkTokens(tokens: Tokens, field: string, remedy: string): number[] {
  if (!Array.isArray(tokens) && !(tokens instanceof Int32Array)) {
    throw complaint({ field, expected: 'a list of token ids', got: tokens === null ? 'null' : typeof tokens });
  }
  if (tokens.length === 0) throw complaint({ field, expected: 'at least one token', got: 'none', remedy });
  return Array.from(tokens, (id, i) => {
    if (Number.isInteger(id) && id >= 0 && id <= largestId) return id;
    throw complaint({
      field: `${field}[${i}]`,
      expected: 'a token id: a whole number from 0',
      got: typeof id === 'number' ? String(id) : typeof id,
      remedy: 'pass ids, as tokenizer.encode gives them',
    });
  });
}

/** @throws `invalid_argument` when the length is not `length`, or a value is not finite */
export function checkNumbers(
  values: ArrayLike<number>,
  { field, length, of }: { readonly field: string; readonly length: number; readonly of: string },
): number[] {
  if (values === null || typeof values !== 'object' || values.length !== length) {
    throw complaint({
      field,
      expected: `${length} numbers, one for each of ${of}`,
      got: values === null || typeof values !== 'object' ? String(typeof values) : `${values.length}`,
      remedy: 'keep tokens and their numbers together, cut to the same length',
    });
  }
  return Array.from(values, (value, i) => checkFinite(value, `${field}[${i}]`));
}

/** @throws `invalid_argument` when not a finite number */
export function checkFinite(value: number, field: string): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw complaint({
    field,
    expected: 'a finite number',
    got: typeof value === 'number' ? String(value) : typeof value,
    remedy: 'leave this sample out, and find where the value comes from',
  });
}
