/**
 * Reverse-mode autodiff over lists of float64: as much as a loss of log-probabilities needs, and no more.
 *
 * A variable is a list of n numbers; one number (n = 1) goes with a list of any length, as plain numbers do. Operations are
 * elementwise unless they say otherwise. NaN and infinity go through, and come out in the loss.
 */
import { complaint } from '@loopwright/protocol';

/** What an operation takes: variables, and constants as a number or a list. */
export type Operand = Variable | number | ArrayLike<number>;

/** Where a variable comes from: what its gradient adds to that of `source`. */
interface Edge {
  readonly source: Variable;
  readonly pull: (gradient: Float64Array) => Float64Array;
}

/** A list of numbers that remembers what it was computed from. Made of log-probabilities by `valueAndGrad`; never changed. */
export class Variable {
  readonly values: Float64Array;
  readonly #edges: readonly Edge[];

  /** A list without a past; a gradient can be taken in it. */
  constructor(values: ArrayLike<number>, edges: readonly Edge[] = []) {
    this.values = Float64Array.from(values);
    this.#edges = edges;
  }

  get length(): number {
    return this.values.length;
  }

  /** Its number, for metrics. @throws `invalid_argument` for a list of another length */
  get value(): number {
    if (this.length === 1) return this.values[0]!;
    throw complaint({ field: 'value', expected: 'a variable of one number', got: `a list of ${this.length}` });
  }

  /** What it was computed from, directly. */
  get sources(): readonly Variable[] {
    return this.#edges.map(({ source }) => source);
  }

  /** What `gradient` of this variable adds to each of its sources, in their order. */
  pull(gradient: Float64Array): Float64Array[] {
    return this.#edges.map((edge) => edge.pull(gradient));
  }

  add(other: Operand): Variable {
    return binary('add', this, other, { of: (a, b) => a + b, left: () => 1, right: () => 1 });
  }
  sub(other: Operand): Variable {
    return binary('sub', this, other, { of: (a, b) => a - b, left: () => 1, right: () => -1 });
  }
  mul(other: Operand): Variable {
    return binary('mul', this, other, { of: (a, b) => a * b, left: (_, b) => b, right: (a) => a });
  }
  div(other: Operand): Variable {
    return binary('div', this, other, { of: (a, b) => a / b, left: (_, b) => 1 / b, right: (a, b) => -a / (b * b) });
  }
  /** The smaller of two; where they are equal, the gradient is this one's. */
  min(other: Operand): Variable {
    const right = (a: number, b: number): number => (b < a ? 1 : 0);
    return binary('min', this, other, { of: Math.min, left: (a, b) => 1 - right(a, b), right });
  }
  /** The larger of two; where they are equal, the gradient is this one's. */
  max(other: Operand): Variable {
    const right = (a: number, b: number): number => (b > a ? 1 : 0);
    return binary('max', this, other, { of: Math.max, left: (a, b) => 1 - right(a, b), right });
  }

  neg(): Variable {
    return this.mul(-1);
  }
  exp(): Variable {
    return unary(this, Math.exp, (_, y) => y);
  }
  log(): Variable {
    return unary(this, Math.log, (x) => 1 / x);
  }
  /** eˣ − 1, exact near 0. */
  expm1(): Variable {
    return unary(this, Math.expm1, (_, y) => y + 1);
  }
  square(): Variable {
    return this.mul(this);
  }
  /** 1 / (1 + e⁻ˣ) */
  sigmoid(): Variable {
    return unary(this, sigmoid, (_, y) => y * (1 - y));
  }
  /** log(1 / (1 + e⁻ˣ)), without overflow. */
  logSigmoid(): Variable {
    return unary(
      this,
      (x) => Math.min(x, 0) - Math.log1p(Math.exp(-Math.abs(x))),
      (x) => sigmoid(-x),
    );
  }
  /** log(1 − eˣ) for x < 0, exact near 0 and far from it; at 0 it is −∞. */
  log1mExp(): Variable {
    const value = (x: number): number => (x > -Math.LN2 ? Math.log(-Math.expm1(x)) : Math.log1p(-Math.exp(x)));
    return unary(this, value, (x) => -1 / Math.expm1(-x));
  }
  /** Kept within bounds, which are within; slope 0 outside. */
  clamp(low: number, high: number): Variable {
    const isInside = (x: number): number => (x >= low && x <= high ? 1 : 0);
    return unary(this, (x) => Math.min(high, Math.max(low, x)), isInside);
  }

  /** One number: that of all elements; 0 of none. */
  sum(): Variable {
    return this.dot(new Float64Array(this.length).fill(1));
  }
  /** One number: their sum divided by their count; NaN of none. */
  mean(): Variable {
    return this.sum().div(this.length);
  }
  /** One number: Σ weight·x. Where the weight is 0 the element is left out, also when it is NaN or infinite. */
  dot(weights: ArrayLike<number>): Variable {
    if (weights.length !== this.length) throw lengthsDiffer('dot', this.length, weights.length);
    let total = 0;
    for (const [i, value] of this.values.entries()) if (weights[i] !== 0) total += weights[i]! * value;
    const pull = ([slope = 0]: Float64Array): Float64Array =>
      Float64Array.from(weights, (weight) => (weight === 0 ? 0 : weight * slope));
    return new Variable([total], [{ source: this, pull }]);
  }
  /** The same numbers, as a constant. */
  stopGradient(): Variable {
    return new Variable(this.values);
  }
}

/** A list of variables of one number each, as one variable. @throws `invalid_argument` when one has another length */
export function stack(scalars: readonly Variable[]): Variable {
  return new Variable(
    scalars.map((scalar) => scalar.value),
    scalars.map((source, i) => ({ source, pull: (gradient) => gradient.slice(i, i + 1) })),
  );
}

function sigmoid(x: number): number {
  // The exponent is never positive, so nothing overflows.
  const power = Math.exp(-Math.abs(x));
  return x >= 0 ? 1 / (1 + power) : power / (1 + power);
}

/** @param slope of the operation at x with the value y */
function unary(x: Variable, of: (x: number) => number, slope: (x: number, y: number) => number): Variable {
  const values = x.values.map(of);
  const pull = (gradient: Float64Array): Float64Array =>
    gradient.map((g, i) => chain(g, slope(x.values[i]!, values[i]!)));
  return new Variable(values, [{ source: x, pull }]);
}

interface Binary {
  readonly of: (a: number, b: number) => number;
  /** ∂/∂a and ∂/∂b. */
  readonly left: (a: number, b: number) => number;
  readonly right: (a: number, b: number) => number;
}

function binary(name: string, left: Variable, other: Operand, rule: Binary): Variable {
  const right = typeof other === 'number' ? [other] : other instanceof Variable ? other.values : other;
  const length = left.length === 1 ? right.length : left.length;
  if (right.length !== 1 && right.length !== length) throw lengthsDiffer(name, left.length, right.length);
  const a = (i: number): number => left.values[left.length === 1 ? 0 : i]!;
  const b = (i: number): number => right[right.length === 1 ? 0 : i]!;
  const edge = (source: Variable, slope: Binary['left']): Edge => ({
    source,
    pull: (gradient) => {
      const pulled = gradient.map((g, i) => chain(g, slope(a(i), b(i))));
      return source.length === 1 && length !== 1 ? Float64Array.of(pulled.reduce((sum, g) => sum + g, 0)) : pulled;
    },
  });
  const values = Float64Array.from({ length }, (_, i) => rule.of(a(i), b(i)));
  const edges = [edge(left, rule.left), ...(other instanceof Variable ? [edge(other, rule.right)] : [])];
  return new Variable(values, edges);
}

/** What has no gradient passes none on, not even where its slope is infinite. */
function chain(gradient: number, slope: number): number {
  return gradient === 0 ? 0 : gradient * slope;
}

function lengthsDiffer(name: string, left: number, right: number): Error {
  return complaint({
    field: name,
    expected: `${left} numbers or one, as on its left`,
    got: String(right),
    remedy: 'put together what belongs to the same datum',
  });
}
