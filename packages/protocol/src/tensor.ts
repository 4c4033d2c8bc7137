/** Typed arrays with a shape: how numbers travel below the wires. Row-major. */

/** One (N) or two (N,K) dimensions. */
export type TensorShape = readonly [number] | readonly [number, number];

export interface FloatTensor {
  readonly dtype: 'float32';
  readonly shape: TensorShape;
  readonly data: Float32Array;
}

/** Token ids. Wires that say int64 are narrowed at the edge, where the range is checked. */
export interface IdTensor {
  readonly dtype: 'int32';
  readonly shape: TensorShape;
  readonly data: Int32Array;
}

export function floatTensor(data: Float32Array, shape: TensorShape = [data.length]): FloatTensor {
  return { dtype: 'float32', shape, data };
}

export function idTensor(data: Int32Array, shape: TensorShape = [data.length]): IdTensor {
  return { dtype: 'int32', shape, data };
}
