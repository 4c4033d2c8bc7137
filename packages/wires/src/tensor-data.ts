/** Numbers from outside into typed arrays: one pass, a check per element, no schema. */
import { complaint, type TensorShape } from '@loopwright/protocol';
import { describeValue, type JsonObject, objectAt, refuseOtherKeys } from './checks.js';

/** A tensor as it came, with the path that errors name. */
export interface RawTensor {
  /** Flat or rows: arrays or typed arrays of numbers. */
  readonly data: unknown;
  readonly shape?: unknown;
  readonly field: string;
}

export const tensorDtypes = ['float32', 'float16', 'bfloat16', 'float64', 'int32', 'int64'] as const;
export type TensorDtype = (typeof tensorDtypes)[number];

/** Largest token id. */
export const maxTokenId = 2 ** 31 - 1;

type Numbers = ArrayLike<unknown>;

function isNumbers(value: unknown): value is Numbers {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && 'length' in value);
}

/** `data` as one flat list, and the shape that its nesting gives. */
function flatten(tensor: RawTensor): { readonly flat: Numbers; readonly shape: readonly number[] } {
  const { data, field } = tensor;
  if (!isNumbers(data))
    throw complaint({ field: `${field}.data`, expected: 'an array of numbers', got: describeValue(data) });
  const first: unknown = data[0];
  if (!isNumbers(first)) return { flat: data, shape: [data.length] };
  const width = first.length;
  const flat: unknown[] = [];
  for (let row = 0; row < data.length; row++) {
    const values: unknown = data[row];
    if (!isNumbers(values) || values.length !== width) {
      throw complaint({
        field: `${field}.data[${row}]`,
        expected: `a row of ${width} numbers`,
        got: describeValue(values),
      });
    }
    for (let i = 0; i < width; i++) flat.push(values[i]);
  }
  return { flat, shape: [data.length, width] };
}

/** The stated shape, else that of the nesting; a last dimension of 1 is dropped. */
function shapeOf(tensor: RawTensor, nested: readonly number[], count: number): TensorShape {
  const field = `${tensor.field}.shape`;
  const stated = tensor.shape ?? nested;
  if (
    !Array.isArray(stated) ||
    stated.length < 1 ||
    stated.length > 2 ||
    !stated.every((n) => Number.isInteger(n) && n >= 0)
  ) {
    throw complaint({ field, expected: 'one or two sizes, (N) or (N,K)', got: describeValue(stated) });
  }
  const [rows, width = 1] = stated as number[];
  if (rows! * width !== count) {
    throw complaint({
      field,
      expected: `sizes whose product is the ${count} values of data`,
      got: `[${stated.join(',')}]`,
    });
  }
  return width === 1 ? [rows!] : [rows!, width];
}

function badNumber(tensor: RawTensor, flat: Numbers, index: number, expected: string): Error {
  return complaint({ field: `${tensor.field}.data[${index}]`, expected, got: describeValue(flat[index]) });
}

/** @throws `invalid_argument` naming the position of the first value that is not an int32 from 0 */
export function readIds(tensor: RawTensor): { readonly data: Int32Array; readonly shape: TensorShape } {
  const { flat, shape } = flatten(tensor);
  const data = new Int32Array(flat.length);
  for (let i = 0; i < flat.length; i++) {
    const value = flat[i];
    if (typeof value === 'number') data[i] = value;
    // What is not an int32 comes back different.
    if (data[i] !== value || data[i]! < 0)
      throw badNumber(tensor, flat, i, `a token id, an integer from 0 to ${maxTokenId}`);
  }
  return { data, shape: shapeOf(tensor, shape, flat.length) };
}

/**
 * @param ignored positions whose value doesn't matter: what is not a finite number there is read as 0
 * @throws `invalid_argument` naming the position of the first value that is not finite in float32
 */
export function readFloats(
  tensor: RawTensor,
  ignored?: (index: number) => boolean,
): { readonly data: Float32Array; readonly shape: TensorShape } {
  const { flat, shape } = flatten(tensor);
  const data = new Float32Array(flat.length);
  for (let i = 0; i < flat.length; i++) {
    const value = flat[i];
    if (typeof value === 'number') {
      data[i] = value;
      if (Number.isFinite(data[i])) continue;
    }
    if (ignored?.(i) !== true || !isNotFinite(value)) {
      throw badNumber(
        tensor,
        flat,
        i,
        ignored === undefined ? 'a finite number' : 'a finite number where the weight is not 0',
      );
    }
    data[i] = 0;
  }
  return { data, shape: shapeOf(tensor, shape, flat.length) };
}

/** NaN and the infinities, and how JSON spells them. */
function isNotFinite(value: unknown): boolean {
  return (
    typeof value === 'number' || value === null || value === 'NaN' || value === 'Infinity' || value === '-Infinity'
  );
}

/** A wire TensorData: its members checked, its numbers not yet. */
export function rawTensor(value: unknown, field: string): RawTensor {
  const tensor: JsonObject = objectAt(value, field);
  refuseOtherKeys(tensor, ['data', 'dtype', 'shape'], field);
  if (!tensorDtypes.some((dtype) => dtype === tensor.dtype)) {
    throw complaint({
      field: `${field}.dtype`,
      expected: `one of ${tensorDtypes.join(', ')}`,
      got: describeValue(tensor.dtype),
    });
  }
  return { data: tensor.data, shape: tensor.shape ?? undefined, field };
}

export interface WireTensor {
  readonly data: readonly (number | string)[];
  readonly dtype: TensorDtype;
  readonly shape: readonly number[];
}
