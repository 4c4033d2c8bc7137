/**
 * Shapes with symbolic dimensions.
 *
 * A dimension is a number, or a product of named sizes that are known only when the program runs, written canonically:
 * `"B"`, `"3*S"`, `"B*S"`. Names may not contain `*`; a name such as `"T+1"` is one opaque size.
 */

export type Dim = number | string;
export type Shape = readonly Dim[];

interface Monomial {
  readonly coefficient: number;
  readonly names: readonly string[];
}

function parse(dim: Dim): Monomial {
  if (typeof dim === 'number') return { coefficient: dim, names: [] };
  let coefficient = 1;
  const names: string[] = [];
  for (const factor of dim.split('*')) {
    if (/^\d+$/.test(factor)) coefficient *= Number(factor);
    else names.push(factor);
  }
  return { coefficient, names: names.sort() };
}

function print({ coefficient, names }: Monomial): Dim {
  if (coefficient === 0 || names.length === 0) return coefficient;
  return coefficient === 1 ? names.join('*') : [coefficient, ...names].join('*');
}

/** Product of dimensions in canonical form; the empty product is 1. */
export function product(dims: Shape): Dim {
  let coefficient = 1;
  const names: string[] = [];
  for (const dim of dims) {
    const monomial = parse(dim);
    coefficient *= monomial.coefficient;
    names.push(...monomial.names);
  }
  return print({ coefficient, names: names.sort() });
}

/** The shape with each dimension in canonical form, so that equal dimensions are equal texts. */
export function canonical(shape: Shape): Shape {
  return shape.map((d) => product([d]));
}

/** Names of the sizes that a dimension is made of, and its number. */
export function factors(dim: Dim): { readonly coefficient: number; readonly names: readonly string[] } {
  return parse(dim);
}

/** The dimension at `axis` (negative counts from the end); throws where there is none. */
export function dim(shape: Shape, axis: number): Dim {
  const at = axis < 0 ? shape.length + axis : axis;
  const found = shape[at];
  if (found === undefined) throw new Error(`shape ${show(shape)} has no axis ${axis}`);
  return found;
}

/** A dimension that must be a number. */
export function staticDim(shape: Shape, axis: number): number {
  const found = dim(shape, axis);
  if (typeof found !== 'number') throw new Error(`axis ${axis} of ${show(shape)} must have a fixed size`);
  return found;
}

export function sameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((d, i) => d === b[i]);
}

export function show(shape: Shape): string {
  return `[${shape.join(',')}]`;
}

/** Shape of an elementwise operation by the rule of NumPy: aligned at the end, 1 stretches. */
export function broadcast(op: string, a: Shape, b: Shape): Shape {
  const rank = Math.max(a.length, b.length);
  const out: Dim[] = [];
  for (let i = 0; i < rank; i++) {
    const x = a[a.length - rank + i] ?? 1;
    const y = b[b.length - rank + i] ?? 1;
    if (x !== y && x !== 1 && y !== 1) throw new Error(`${op}: shapes ${show(a)} and ${show(b)} do not broadcast`);
    out.push(x === 1 ? y : x);
  }
  return out;
}

/** Axes as non-negative, sorted numbers. */
export function normalizeAxes(axes: readonly number[], rank: number): number[] {
  return axes.map((axis) => (axis < 0 ? axis + rank : axis)).sort((a, b) => a - b);
}
