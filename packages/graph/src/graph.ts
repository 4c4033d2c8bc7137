/** Programs as graphs of values and nodes. A graph is built once, differentiated, optimised and lowered; it never runs by itself. */
import type { OpName } from './ops/registry.js';
import { opTable } from './ops/registry.js';
import { canonical, type Shape, show } from './shape.js';

/** `int8`: weights that were rounded; no arithmetic but the product that is made for them. */
export type DType = 'float32' | 'int64' | 'bool' | 'int8';

export interface ValueType {
  readonly dtype: DType;
  readonly shape: Shape;
}

export type AttributeValue = number | string | boolean | readonly number[];
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** The result of a node, an input or a constant. */
export interface Value extends ValueType {
  readonly id: number;
  readonly graph: Graph;
  readonly source: Source;
}

export type Source =
  | { readonly type: 'input'; readonly name: string }
  | { readonly type: 'constant'; readonly constant: Constant }
  | { readonly type: 'node'; readonly node: Node; readonly output: number };

/** Data that is part of the program: small arrays inline, large ones by place in a file. */
export type Constant =
  | { readonly type: 'inline'; readonly data: Float32Array | BigInt64Array | Int8Array }
  | { readonly type: 'external'; readonly name: string; readonly place: FilePlace };

/** Where an array lies in a file. */
export interface FilePlace {
  /** Its name, relative to the folder that the model is loaded from. */
  readonly file: string;
  /** Bytes from the start. */
  readonly offset: number;
}

export interface Node {
  readonly op: OpName;
  readonly inputs: readonly Value[];
  readonly attributes: Attributes;
  readonly outputs: readonly Value[];
}

/** Nodes from place `start` to place `end` (excluded): what they make is not kept for a backward pass. Regions lie in each other or apart. */
export interface Region {
  readonly start: number;
  readonly end: number;
}

export class Graph {
  readonly inputs: Value[] = [];
  readonly nodes: Node[] = [];
  /** Inner ones before outer ones. */
  readonly regions: Region[] = [];
  #nextId = 0;
  readonly #scalars = new Map<string, Value>();

  /** A value fed at each run. Every name of a symbolic dimension must occur in the shape of some input. */
  input(name: string, dtype: DType, shape: Shape): Value {
    if (this.inputs.some((value) => value.source.type === 'input' && value.source.name === name)) {
      throw new Error(`input ${name} exists already`);
    }
    const value = this.#value({ dtype, shape: canonical(shape) }, { type: 'input', name });
    this.inputs.push(value);
    return value;
  }

  constant(data: Float32Array | BigInt64Array | Int8Array, shape: readonly number[]): Value {
    const count = shape.reduce((a, b) => a * b, 1);
    if (count !== data.length)
      throw new Error(`constant of shape ${show(shape)} needs ${count} values, got ${data.length}`);
    const dtype = data instanceof Float32Array ? 'float32' : data instanceof Int8Array ? 'int8' : 'int64';
    return this.#value({ dtype, shape }, { type: 'constant', constant: { type: 'inline', data } });
  }

  /** An array that lies in a file. */
  externalConstant(
    name: string,
    { dtype = 'float32', shape, ...place }: FilePlace & { readonly dtype?: DType; readonly shape: readonly number[] },
  ): Value {
    return this.#value({ dtype, shape }, { type: 'constant', constant: { type: 'external', name, place } });
  }

  /** A float32 number of shape []; equal numbers are one value. */
  scalar(number: number): Value {
    const key = Object.is(number, -0) ? '-0' : String(Math.fround(number));
    let value = this.#scalars.get(key);
    if (value === undefined) {
      value = this.constant(Float32Array.of(number), []);
      this.#scalars.set(key, value);
    }
    return value;
  }

  /** Adds a node; its shape rule checks the inputs and throws a sentence that names the operation and the shapes. */
  apply(op: OpName, inputs: readonly Value[], attributes: Attributes = {}): readonly Value[] {
    for (const input of inputs) {
      if (input.graph !== this) throw new Error(`${op}: an input belongs to another graph`);
    }
    const types = opTable[op].infer(inputs, attributes);
    const outputs: Value[] = [];
    const node: Node = { op, inputs, attributes, outputs };
    types.forEach((type, output) => {
      outputs.push(this.#value(type, { type: 'node', node, output }));
    });
    this.nodes.push(node);
    return outputs;
  }

  /** Makes a region of the nodes that `build` adds; see `recompute`. */
  region<T>(build: () => T): T {
    const start = this.nodes.length;
    const result = build();
    if (this.nodes.length > start) this.regions.push({ start, end: this.nodes.length });
    return result;
  }

  #value(type: ValueType, source: Source): Value {
    return { id: this.#nextId++, graph: this, source, dtype: type.dtype, shape: type.shape };
  }
}

/** The number that a scalar constant holds, or undefined. */
export function scalarOf(value: Value): number | undefined {
  if (value.source.type !== 'constant' || value.source.constant.type !== 'inline') return undefined;
  const { data } = value.source.constant;
  return data.length === 1 && value.shape.length === 0 && data instanceof Float32Array ? data[0] : undefined;
}
