/** Arrays of the reference interpreter: row-major numbers with a shape. int64 and bool are held as whole numbers. */
import type { DType } from '../graph.js';
import type { Dim, Shape } from '../shape.js';

export interface Tensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: Float64Array;
}

export type Sizes = Readonly<Record<string, number>>;
export type Index = readonly number[];

export function sizeOf(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1);
}

/** The number that a dimension stands for; sums of names that Concat makes are added up. */
export function resolveDim(dim: Dim, sizes: Sizes): number {
  if (typeof dim === 'number') return dim;
  const known = sizes[dim];
  if (known !== undefined) return known;
  const atom = (text: string): number => {
    const number = sizes[text] ?? Number(text);
    if (Number.isNaN(number)) throw new Error(`size ${text} is not bound`);
    return number;
  };
  const factor = (text: string): number =>
    text
      .split('+')
      .map((term) =>
        term
          .split('·')
          .map(atom)
          .reduce((a, b) => a * b, 1),
      )
      .reduce((a, b) => a + b, 0);
  return dim
    .split('*')
    .map(factor)
    .reduce((a, b) => a * b, 1);
}

export function resolveShape(shape: Shape, sizes: Sizes): number[] {
  return shape.map((dim) => resolveDim(dim, sizes));
}

/** Every index of a shape, in row-major order. */
export function indices(shape: readonly number[]): Index[] {
  let all: Index[] = [[]];
  for (const size of shape) all = all.flatMap((index) => Array.from({ length: size }, (_, i) => [...index, i]));
  return all;
}

/** The element at an index; indices are aligned at the end and axes of size 1 stretch, as NumPy broadcasts. */
export function read({ shape, data }: Tensor, index: Index): number {
  let offset = 0;
  for (const [axis, size] of shape.entries()) {
    const at = index[index.length - shape.length + axis] ?? 0;
    offset = offset * size + (size === 1 ? 0 : at);
  }
  const value = data[offset];
  if (value === undefined) throw new Error(`index ${index} is outside of [${shape}]`);
  return value;
}

/** A tensor whose elements are computed one by one. */
export function build(dtype: DType, shape: readonly number[], element: (index: Index) => number): Tensor {
  return { dtype, shape, data: Float64Array.from(indices(shape).map(element)) };
}

/** Shape of an elementwise result. */
export function broadcastShapes(shapes: readonly (readonly number[])[]): number[] {
  const rank = Math.max(...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, i) => {
    const stretched = shapes.map((shape) => shape[shape.length - rank + i] ?? 1);
    return stretched.find((size) => size !== 1) ?? 1;
  });
}
