/** Tensors of loss inputs, JSON and protobuf, dense or CSR, into flat numbers with a shape. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { arrayAt, describeValue, integerAt, objectAt } from '../checks.js';
import { maxTokenId, type RawTensor } from '../tensor-data.js';
import { bfloat16sOf, float32sOf, int32sOf, int64sOf } from './buffers.js';
import type { Tensor } from './tinker_pb.js';

/** Values of a dense tensor that a sparse one may spread out to. */
const maxDense = 1 << 26;

interface Sparse {
  readonly values: ArrayLike<unknown>;
  /** Row r holds the entries from `rows[r]` to `rows[r + 1]`. */
  readonly rows: ArrayLike<number>;
  readonly columns: ArrayLike<number>;
  readonly shape: readonly number[];
}

/**
 * A JSON TensorData. Its numbers are checked by whoever reads them.
 *
 * @param empty what stands where a sparse one has nothing
 * @throws `invalid_argument`
 */
export function jsonTensor(value: unknown, field: string, empty = 0): RawTensor {
  const { data, dtype, shape, sparse_crow_indices: rows, sparse_col_indices: columns } = objectAt(value, field);
  if (dtype !== 'float32' && dtype !== 'int64') {
    throw complaint({ field: `${field}.dtype`, expected: 'float32 or int64', got: describeValue(dtype) });
  }
  const list = arrayAt(data, `${field}.data`);
  if (rows === undefined || rows === null) {
    return { data: list, shape: shape ?? [list.length], field };
  }
  const integers = (item: unknown, at: string) =>
    arrayAt(item, at).map((one, index) => integerAt(one, `${at}[${index}]`, { min: 0, max: maxTokenId }));
  const sparse: Sparse = {
    values: list,
    rows: integers(rows, `${field}.sparse_crow_indices`),
    columns: integers(columns, `${field}.sparse_col_indices`),
    shape: integers(shape, `${field}.shape`),
  };
  return { data: dense(sparse, field, empty), shape: sparse.shape, field };
}

/** A protobuf Tensor. @throws `invalid_argument` */
export function protoTensor({ encoding, dtype, shape: wide }: Tensor, field: string): RawTensor {
  const shape = wide.map(Number);
  switch (encoding.case) {
    case 'dense': {
      const data = valuesOf(encoding.value, dtype, field);
      return { data, shape: shape.length === 0 ? [data.length] : shape, field };
    }
    case 'sparseCsr': {
      const { values, crowIndices, colIndices } = encoding.value;
      const sparse: Sparse = {
        values: valuesOf(values, dtype, field),
        rows: int64sOf(crowIndices, `${field}.crow_indices`),
        columns: int64sOf(colIndices, `${field}.col_indices`),
        shape,
      };
      return { data: dense(sparse, field), shape, field };
    }
    default:
      throw complaint({ field, expected: 'dense or sparse values', got: 'neither' });
  }
}

function valuesOf(bytes: Uint8Array, dtype: number, field: string): Int32Array | Float32Array {
  switch (dtype) {
    case 1:
      return float32sOf(bytes, field);
    case 2:
      return int64sOf(bytes, field);
    case 3:
      return int32sOf(bytes, field);
    case 4:
      return bfloat16sOf(bytes, field);
    default:
      throw complaint({ field: `${field}.dtype`, expected: '1 to 4', got: String(dtype) });
  }
}

function dense({ values, rows, columns, shape }: Sparse, field: string, empty = 0): unknown[] {
  const [height, width] = shape;
  if (height === undefined || width === undefined || shape.length !== 2) {
    throw complaint({ field: `${field}.shape`, expected: 'two sizes', got: `${shape.length}` });
  }
  if (height * width > maxDense || rows.length !== height + 1 || columns.length !== values.length) {
    throw broken(field);
  }
  const flat: unknown[] = new Array(height * width).fill(empty);
  for (let row = 0; row < height; row++) {
    const [begin, end] = [rows[row]!, rows[row + 1]!];
    if (begin < 0 || begin > end || end > values.length) throw broken(field);
    for (let i = begin; i < end; i++) {
      if (columns[i]! < 0 || columns[i]! >= width) throw broken(field);
      flat[row * width + columns[i]!] = values[i];
    }
  }
  return flat;
}

function broken(field: string): LoopwrightError {
  return complaint({ field, expected: 'a sparse tensor whose indices lie in its shape', got: 'another' });
}
