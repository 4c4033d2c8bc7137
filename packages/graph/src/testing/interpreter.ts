/**
 * Reference interpreter: runs a program in float64, slowly and obviously, one function per operation. Tests compare the lowered
 * model and the gradients against it. An operation without a reference here does not compile.
 */
import type { Attributes, Value } from '../graph.js';
import type { OpName } from '../ops/registry.js';
import type { Program } from '../program.js';
import { factors } from '../shape.js';
import {
  broadcastShapes,
  build,
  type Index,
  indices,
  read,
  resolveShape,
  type Sizes,
  sizeOf,
  type Tensor,
} from './tensor.js';

interface Call {
  readonly inputs: readonly Tensor[];
  readonly attributes: Attributes;
  /** Shapes that the shape rule promised, in numbers. */
  readonly outputShapes: readonly (readonly number[])[];
}

type Reference = (call: Call) => readonly Tensor[];

function operand({ inputs }: Call, index: number): Tensor {
  const found = inputs[index];
  if (found === undefined) throw new Error(`operand ${index} is missing`);
  return found;
}

const numbers = (value: unknown): readonly number[] => value as readonly number[]; // true: shape rules of these operations read it so too
const last = <T>(list: readonly T[]): T => list[list.length - 1]!; // callers pass shapes with one axis at least
const replaceLast = (index: Index, at: number): number[] => [...index.slice(0, -1), at];
const replaceAt = (index: Index, axis: number, at: number): number[] => index.map((i, k) => (k === axis ? at : i));
const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const sigma = (x: number): number => 1 / (1 + Math.exp(-x));

function elementwise(compute: (...values: number[]) => number, dtype?: Tensor['dtype']): Reference {
  return (call) => {
    const shape = broadcastShapes(call.inputs.map((input) => input.shape));
    const element = (index: Index) => compute(...call.inputs.map((input) => read(input, index)));
    return [build(dtype ?? operand(call, 0).dtype, shape, element)];
  };
}

/** Where: as elementwise, but the dtype is that of the choices. */
const choose: Reference = (call) => {
  const [result] = elementwise((condition, a, b) => (condition ? a! : b!))(call);
  return [{ ...result!, dtype: operand(call, 1).dtype }];
};

function reduce(combine: (values: readonly number[]) => number): Reference {
  return (call) => {
    const input = operand(call, 0);
    const axes = numbers(call.attributes.axes);
    const keepDims = call.attributes.keepDims === true;
    const kept = input.shape.map((size, axis) => (axes.includes(axis) ? 1 : size));
    const groups = indices(axes.map((axis) => input.shape[axis]!));
    const full = build(input.dtype, kept, (index) =>
      combine(
        groups.map((group) =>
          read(
            input,
            index.map((i, axis) => (axes.includes(axis) ? group[axes.indexOf(axis)]! : i)),
          ),
        ),
      ),
    );
    return [keepDims ? full : { ...full, shape: kept.filter((_, axis) => !axes.includes(axis)) }];
  };
}

function overLastAxis(compute: (row: readonly number[]) => readonly number[]): Reference {
  return (call) => {
    const input = operand(call, 0);
    const width = last(input.shape);
    const rows = indices(input.shape.slice(0, -1)).map((row) =>
      compute(range(width).map((i) => read(input, [...row, i]))),
    );
    return [{ dtype: 'float32', shape: input.shape, data: Float64Array.from(rows.flat()) }];
  };
}

function logSoftmaxRow(row: readonly number[]): number[] {
  const largest = Math.max(...row);
  const logTotal = Math.log(row.reduce((total, x) => total + Math.exp(x - largest), 0));
  return row.map((x) => x - largest - logTotal);
}

/** Exact for numbers that float64 has room for beside 2⁵² and a half. */
const roundHalfToEven = (x: number): number => x + 1.5 * 2 ** 52 - 1.5 * 2 ** 52;

/** Largest first; equal values by place. */
const sortedPlaces = (row: readonly number[]): number[] => range(row.length).sort((i, j) => row[j]! - row[i]! || i - j);

function rowsOf(tensor: Tensor): number[][] {
  const width = last(tensor.shape);
  return indices(tensor.shape.slice(0, -1)).map((row) => range(width).map((i) => read(tensor, [...row, i])));
}

const references: Readonly<Record<OpName, Reference>> = {
  Add: elementwise((a, b) => a! + b!),
  Sub: elementwise((a, b) => a! - b!),
  Mul: elementwise((a, b) => a! * b!),
  Div: elementwise((a, b) => a! / b!),
  Min: elementwise((a, b) => Math.min(a!, b!)),
  Max: elementwise((a, b) => Math.max(a!, b!)),
  Neg: elementwise((a) => -a!),
  Exp: elementwise((a) => Math.exp(a!)),
  Log: elementwise((a) => Math.log(a!)),
  Sigmoid: elementwise((a) => sigma(a!)),
  Equal: elementwise((a, b) => (a === b ? 1 : 0), 'bool'),
  LessOrEqual: elementwise((a, b) => (a! <= b! ? 1 : 0), 'bool'),
  Where: choose,
  StopGradient: (call) => [operand(call, 0)],
  WaitFor: (call) => [operand(call, 0)],
  QuickGelu: (call) => elementwise((a) => a! * sigma(Number(call.attributes.alpha) * a!))(call),

  Cast: (call) => {
    const input = operand(call, 0);
    const dtype = call.attributes.to as 'float32' | 'int64' | 'bool'; // true: the builder of Cast sets it
    const convert = { float32: (x: number) => x, int64: Math.trunc, bool: (x: number) => (x === 0 ? 0 : 1) }[dtype];
    return [{ dtype, shape: input.shape, data: input.data.map(convert) }];
  },

  ReduceSum: reduce((values) => values.reduce((a, b) => a + b, 0)),
  ReduceMean: reduce((values) => values.reduce((a, b) => a + b, 0) / values.length),
  ReduceMax: reduce((values) => Math.max(...values)),

  Softmax: overLastAxis((row) => logSoftmaxRow(row).map(Math.exp)),
  LogSoftmax: overLastAxis(logSoftmaxRow),

  CumSum: (call) => {
    const input = operand(call, 0);
    const axis = Number(call.attributes.axis);
    return [
      build(input.dtype, input.shape, (index) =>
        range(index[axis]! + 1).reduce((total, at) => total + read(input, replaceAt(index, axis, at)), 0),
      ),
    ];
  },

  TopK: (call) => {
    const input = operand(call, 0);
    const k = Number(call.attributes.k);
    const rows = rowsOf(input);
    const places = rows.map((row) => sortedPlaces(row).slice(0, k));
    const shape = replaceLast(input.shape, k);
    return [
      { dtype: 'float32', shape, data: Float64Array.from(places.flatMap((at, i) => at.map((j) => rows[i]![j]!))) },
      { dtype: 'int64', shape, data: Float64Array.from(places.flat()) },
    ];
  },

  OneHot: (call) => {
    const ids = operand(call, 0);
    const shape = [...ids.shape, Number(call.attributes.depth)];
    return [build('float32', shape, (index) => (read(ids, index.slice(0, -1)) === last(index) ? 1 : 0))];
  },

  Reshape: (call) => [{ ...operand(call, 0), shape: call.outputShapes[0]! }],

  ExpandLike: (call) => {
    const [input, like] = [operand(call, 0), operand(call, 1)];
    return [build(input.dtype, like.shape, (index) => read(input, index))];
  },

  Transpose: (call) => {
    const input = operand(call, 0);
    const axes = numbers(call.attributes.axes);
    const shape = axes.map((axis) => input.shape[axis]!);
    return [
      build(input.dtype, shape, (index) =>
        read(
          input,
          axes.map((_, axis) => index[axes.indexOf(axis)]!),
        ),
      ),
    ];
  },

  Concat: (call) => {
    const axis = Number(call.attributes.axis);
    const first = operand(call, 0);
    const places = call.inputs.flatMap((part) => range(part.shape[axis]!).map((at) => ({ part, at })));
    const shape = replaceAt(first.shape, axis, places.length);
    return [
      build(first.dtype, shape, (index) => {
        const { part, at } = places[index[axis]!]!;
        return read(part, replaceAt(index, axis, at));
      }),
    ];
  },

  Slice: (call) => {
    const input = operand(call, 0);
    const [axis, start, end] = [call.attributes.axis, call.attributes.start, call.attributes.end].map(Number);
    const shape = replaceAt(input.shape, axis!, end! - start!);
    return [build(input.dtype, shape, (index) => read(input, replaceAt(index, axis!, index[axis!]! + start!)))];
  },

  Pad: (call) => {
    const input = operand(call, 0);
    const [axis, before, after] = [call.attributes.axis, call.attributes.before, call.attributes.after].map(Number);
    const size = input.shape[axis!]!;
    return [
      build(input.dtype, replaceAt(input.shape, axis!, before! + size + after!), (index) => {
        const at = index[axis!]! - before!;
        return at >= 0 && at < size ? read(input, replaceAt(index, axis!, at)) : 0;
      }),
    ];
  },

  Split: (call) => {
    const input = operand(call, 0);
    const axis = Number(call.attributes.axis);
    let start = 0;
    return call.outputShapes.map((shape) => {
      const from = start;
      start += shape[axis]!;
      return build(input.dtype, shape, (index) => read(input, replaceAt(index, axis, index[axis]! + from)));
    });
  },

  Gather: (call) => {
    const [table, ids] = [operand(call, 0), operand(call, 1)];
    const shape = [...ids.shape, ...table.shape.slice(1)];
    return [
      build(table.dtype, shape, (index) =>
        read(table, [read(ids, index.slice(0, ids.shape.length)), ...index.slice(ids.shape.length)]),
      ),
    ];
  },

  GatherElements: (call) => {
    const [input, ids] = [operand(call, 0), operand(call, 1)];
    return [build(input.dtype, ids.shape, (index) => read(input, replaceLast(index, read(ids, index))))];
  },

  GatherRows: (call) => {
    const [input, ids] = [operand(call, 0), operand(call, 1)];
    const shape = [input.shape[0]!, input.shape[2]!];
    return [build(input.dtype, shape, ([n, k]) => read(input, [n!, read(ids, [n!, 0]), k!]))];
  },

  MatMul: (call) => {
    const [a, b] = [operand(call, 0), operand(call, 1)];
    const { transposeA, transposeB, alpha = 1 } = call.attributes;
    const [rowsA, columnsA] = transposeA ? [a.shape.at(-1)!, a.shape.at(-2)!] : [a.shape.at(-2)!, a.shape.at(-1)!];
    const columnsB = b.shape.at(transposeB ? -2 : -1)!;
    const shape = [...broadcastShapes([a.shape.slice(0, -2), b.shape.slice(0, -2)]), rowsA, columnsB];
    return [
      build('float32', shape, (index) => {
        const [lead, m, n] = [index.slice(0, -2), index.at(-2)!, index.at(-1)!];
        const products = range(columnsA).map(
          (k) =>
            read(a, [...lead, ...(transposeA ? [k, m] : [m, k])]) *
            read(b, [...lead, ...(transposeB ? [n, k] : [k, n])]),
        );
        return Number(alpha) * products.reduce((x, y) => x + y, 0);
      }),
    ];
  },

  // In float32 where the kernels round, so that both round to the same whole numbers.
  Int8MatMul: (call) => {
    const [x, weight, scale] = [operand(call, 0), operand(call, 1), operand(call, 2)];
    const rows = rowsOf(x).map((row) => {
      const largest = Math.max(...row.map(Math.abs));
      const step = Math.fround(1 / 127);
      const whole = row.map((value) => roundHalfToEven(Math.fround(Math.fround(value / largest) / step)));
      return { largest, whole: largest === 0 ? row : whole };
    });
    const shape = replaceLast(x.shape, scale.shape[0]!);
    const columns = scale.shape[0]!;
    const values = rows.flatMap(({ largest, whole }) =>
      range(columns).map(
        (n) => (largest / 127) * read(scale, [n]) * whole.reduce((sum, q, k) => sum + q * read(weight, [k, n]), 0),
      ),
    );
    return [{ dtype: 'float32', shape, data: Float64Array.from(values) }];
  },

  RmsNorm: (call) => {
    const [x, weight] = [operand(call, 0), operand(call, 1)];
    const width = last(x.shape);
    const rstd = build('float32', replaceLast(x.shape, 1), (index) => {
      const squares = range(width).map((i) => read(x, replaceLast(index, i)) ** 2);
      return 1 / Math.sqrt(squares.reduce((a, b) => a + b, 0) / width + Number(call.attributes.epsilon));
    });
    return [build('float32', x.shape, (index) => read(weight, index) * read(x, index) * read(rstd, index)), rstd];
  },

  RotaryEmbedding: (call) => {
    const [x, positions, cos, sin] = [operand(call, 0), operand(call, 1), operand(call, 2), operand(call, 3)];
    const headWidth = last(x.shape) / Number(call.attributes.heads);
    const half = headWidth / 2;
    const sign = call.attributes.inverse === true ? -1 : 1;
    return [
      build('float32', x.shape, ([b, s, place]) => {
        const position = read(positions, [b!, s!]);
        const inHead = place! % headWidth;
        const [c, t] = [read(cos, [position, inHead % half]), sign * read(sin, [position, inHead % half])];
        const partner = inHead < half ? -read(x, [b!, s!, place! + half]) : read(x, [b!, s!, place! - half]);
        return read(x, [b!, s!, place!]) * c + partner * t;
      }),
    ];
  },

  LinearLogprob: (call) => {
    const [x, w, ids] = [operand(call, 0), operand(call, 1), operand(call, 2)];
    const rows = rowsOf(x).map((row) =>
      logSoftmaxRow(rowsOf(w).map((column) => column.reduce((total, value, i) => total + value * row[i]!, 0))),
    );
    const expected = build('float32', x.shape, ([n, h]) =>
      rows[n!]!.reduce((total, logprob, v) => total + Math.exp(logprob) * read(w, [v, h!]), 0),
    );
    return [build('float32', ids.shape, (index) => rows[index[0]!]![read(ids, index)]!), expected];
  },
};

function constantOf(value: Value): Tensor {
  if (value.source.type !== 'constant' || value.source.constant.type !== 'inline') {
    throw new Error('the interpreter knows inline constants only');
  }
  const data = Float64Array.from(value.source.constant.data as ArrayLike<number | bigint>, Number); // true of all three arrays
  return { dtype: value.dtype, shape: value.shape.map(Number), data };
}

/** Sizes of the named dimensions, read off the inputs. */
export function bindSizes(program: Program, feeds: Readonly<Record<string, Tensor>>): Sizes {
  const sizes: Record<string, number> = {};
  for (const { source, shape } of program.inputs) {
    const fed = source.type === 'input' ? feeds[source.name] : undefined;
    shape.forEach((dim, axis) => {
      if (typeof dim !== 'string' || fed === undefined) return;
      sizes[dim] = fed.shape[axis]!;
      const { coefficient, names } = factors(dim);
      if (names.length === 1) sizes[names[0]!] = fed.shape[axis]! / coefficient;
    });
  }
  return sizes;
}

/**
 * Runs a program on the given inputs.
 *
 * @throws when an input is missing, or a result has another shape or dtype than the operation's rule promised
 */
export function interpret(program: Program, feeds: Readonly<Record<string, Tensor>>): Record<string, Tensor> {
  const sizes = bindSizes(program, feeds);
  const known = new Map<number, Tensor>();
  const tensorOf = (value: Value): Tensor => {
    let tensor = known.get(value.id);
    if (tensor !== undefined) return tensor;
    const { source } = value;
    if (source.type === 'node') throw new Error(`${source.node.op} was read before it ran`);
    tensor = source.type === 'input' ? feeds[source.name] : constantOf(value);
    if (tensor === undefined) throw new Error('an input was not fed');
    known.set(value.id, tensor);
    return tensor;
  };
  for (const node of program.nodes) {
    const outputShapes = node.outputs.map(({ shape }) => resolveShape(shape, sizes));
    const results = references[node.op]({
      inputs: node.inputs.map(tensorOf),
      attributes: node.attributes,
      outputShapes,
    });
    node.outputs.forEach((value, i) => {
      const result = results[i];
      if (
        result?.shape.join() !== outputShapes[i]!.join() ||
        result.dtype !== value.dtype ||
        sizeOf(result.shape) !== result.data.length
      ) {
        throw new Error(
          `${node.op}: output ${i} is ${result?.dtype} [${result?.shape}], its rule says ${value.dtype} [${outputShapes[i]}]`,
        );
      }
      known.set(value.id, result);
    });
  }
  return Object.fromEntries(program.outputs.map(({ name, value }) => [name, tensorOf(value)]));
}
