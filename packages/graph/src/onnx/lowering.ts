/** From a program to an ONNX model: names, shared constants, run-time shapes. Operations see one node at a time through `Lowering`. */
import type { Attributes, Constant, Node, Value, ValueType } from '../graph.js';
import { opTable } from '../ops/registry.js';
import type { Program } from '../program.js';
import { type Dim, factors, type Shape, show } from '../shape.js';
import { bytesPerNumber, onnxDType, onnxUint8 } from './dtype.js';
import { encodeModel, type OnnxAttribute, type OnnxInitializer, type OnnxNode } from './model-proto.js';

/** What an operation needs to emit itself. */
export interface Lowering {
  readonly attributes: Attributes;
  readonly inputs: readonly string[];
  /** Names of the outputs, unused ones at the end left out. */
  readonly outputs: readonly string[];
  /** Names of all outputs, read or not. */
  readonly allOutputs: readonly string[];
  readonly inputTypes: readonly ValueType[];
  readonly outputTypes: readonly ValueType[];
  input(index: number): string;
  output(index: number): string;
  /** Whether anything reads that output. */
  uses(output: number): boolean;
  emit(
    opType: string,
    inputs: readonly string[],
    outputs: readonly string[],
    attributes?: Readonly<Record<string, OnnxAttribute>>,
    domain?: string,
  ): void;
  /** Fresh names of intermediate results. */
  temps(count: 8): readonly [string, string, string, string, string, string, string, string];
  /** int64 vector constant. */
  ints(values: readonly number[]): string;
  intScalar(value: number): string;
  floats(values: readonly number[]): string;
  /** uint8 scalar constant. */
  byteScalar(value: number): string;
  /** A result that nodes share: made at the first call for a key. */
  shared(key: string, make: (name: string) => void): string;
  /** Whether each named size of a shape is an axis of some input, as `shapeVector` needs. */
  knowsSizes(shape: Shape): boolean;
  /** int64 vector of a shape, with named sizes read from the inputs at run time. */
  shapeVector(shape: Shape): string;
  /** As shapeVector, but a constant with 0 (copied) and −1 (inferred) wherever that says enough. */
  reshapeTarget(from: Shape, to: Shape): string;
}

export interface LoweredProgram {
  /** A complete ONNX model. */
  readonly bytes: Uint8Array;
  readonly nodeCount: number;
}

/** An input's axis that tells a named size: of that size, or of a multiple of it. */
function axisOf(program: Program, symbol: string): { input: Value; axis: number; multiple: number } | undefined {
  for (const input of program.inputs) {
    for (const [axis, size] of input.shape.entries()) {
      const { coefficient, names } = factors(size);
      if (names.length === 1 && names[0] === symbol) return { input, axis, multiple: coefficient };
    }
  }
  return undefined;
}

class Emitter {
  readonly nodes: OnnxNode[] = [];
  readonly initializers: OnnxInitializer[] = [];
  readonly #program: Program;
  readonly #names = new Map<number, string>();
  readonly #shared = new Map<string, string>();
  readonly #uses: ReadonlySet<number>;
  readonly #taken: ReadonlySet<string>;
  #next = 0;

  constructor(program: Program) {
    this.#program = program;
    const used = new Set<number>(program.outputs.map(({ value }) => value.id));
    for (const node of program.nodes) for (const input of node.inputs) used.add(input.id);
    this.#uses = used;
    const inputNames = program.inputs.flatMap(({ source }) => (source.type === 'input' ? [source.name] : []));
    const outputNames = program.outputs.map(({ name }) => name);
    this.#taken = new Set([...inputNames, ...outputNames]);
    const twice = outputNames.find((name) => inputNames.includes(name));
    if (twice !== undefined) throw new Error(`output ${twice} has the name of an input; name it otherwise`);
  }

  fresh(): string {
    let name = `t${this.#next++}`;
    while (this.#taken.has(name)) name = `t${this.#next++}`;
    return name;
  }

  name(value: Value): string {
    const known = this.#names.get(value.id);
    if (known !== undefined) return known;
    const { source } = value;
    const name = source.type === 'input' ? source.name : this.fresh();
    this.#names.set(value.id, name);
    if (source.type === 'constant') this.#constant(name, value, source.constant);
    return name;
  }

  #constant(name: string, value: Value, constant: Constant): void {
    const dims = value.shape.map((d) => Number(d));
    const dtype = onnxDType[value.dtype];
    if (constant.type === 'inline') {
      const { buffer, byteOffset, byteLength } = constant.data;
      this.initializers.push({ name, dtype, dims, data: { raw: new Uint8Array(buffer, byteOffset, byteLength) } });
      return;
    }
    const { file: location, offset } = constant.place;
    const sizeBytes = bytesPerNumber[value.dtype] * dims.reduce((a, b) => a * b, 1);
    this.initializers.push({ name, dtype, dims, data: { location, offset, sizeBytes } });
  }

  shared(key: string, make: (name: string) => void): string {
    const known = this.#shared.get(key);
    if (known !== undefined) return known;
    const name = this.fresh();
    this.#shared.set(key, name);
    make(name);
    return name;
  }

  int64(key: string, values: readonly number[], dims: readonly number[]): string {
    return this.shared(key, (name) => {
      const raw = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
      this.initializers.push({ name, dtype: onnxDType.int64, dims, data: { raw } });
    });
  }

  ints(values: readonly number[]): string {
    return this.int64(`ints ${values.join(',')}`, values, [values.length]);
  }

  emit(
    opType: string,
    inputs: readonly string[],
    outputs: readonly string[],
    attributes: Readonly<Record<string, OnnxAttribute>> = {},
    domain = '',
  ): void {
    this.nodes.push({ opType, inputs, outputs, attributes, domain });
  }

  /** int64 [1] with the run-time size of a named dimension. */
  #size(symbol: string): string {
    return this.shared(`size ${symbol}`, (name) => {
      const found = axisOf(this.#program, symbol);
      if (found === undefined) throw new Error(`no input has an axis of size ${symbol}`);
      const { input, axis, multiple } = found;
      const shape = this.shared(`shape of ${this.name(input)}`, (all) => this.emit('Shape', [this.name(input)], [all]));
      const size = multiple === 1 ? name : this.fresh();
      this.emit('Slice', [shape, this.ints([axis]), this.ints([axis + 1]), this.ints([0])], [size]);
      if (multiple !== 1) this.emit('Div', [size, this.ints([multiple])], [name]);
    });
  }

  #dimVector(dim: Dim): string {
    const { coefficient, names } = factors(dim);
    if (names.length === 0) return this.ints([coefficient]);
    return this.shared(`dim ${dim}`, (name) => {
      const parts = [
        ...(coefficient === 1 ? [] : [this.ints([coefficient])]),
        ...names.map((symbol) => this.#size(symbol)),
      ];
      let product = parts[0]!; // there is one name at least
      parts.slice(1).forEach((part, i) => {
        const next = i === parts.length - 2 ? name : this.fresh();
        this.emit('Mul', [product, part], [next]);
        product = next;
      });
      if (parts.length === 1) this.emit('Identity', [product], [name]);
    });
  }

  knowsSizes(shape: Shape): boolean {
    const names = shape.flatMap((d) => factors(d).names);
    return names.every((symbol) => axisOf(this.#program, symbol) !== undefined);
  }

  shapeVector(shape: Shape): string {
    if (shape.every((d) => typeof d === 'number')) return this.ints(shape);
    return this.shared(`vector ${show(shape)}`, (name) => {
      this.emit(
        'Concat',
        shape.map((d) => this.#dimVector(d)),
        [name],
        { axis: { int: 0 } },
      );
    });
  }

  reshapeTarget(from: Shape, to: Shape): string {
    let unknown = 0;
    const target = to.map((d, i) => {
      if (typeof d === 'number') return d;
      if (d === from[i]) return 0;
      unknown++;
      return -1;
    });
    return unknown <= 1 && !to.includes(0) ? this.ints(target) : this.shapeVector(to);
  }

  lower(node: Node): void {
    const outputs = node.outputs.map((value) => this.name(value));
    let used = outputs.length;
    while (used > 1 && !this.#uses.has(node.outputs[used - 1]!.id)) used--;
    const inputs = node.inputs.map((value) => this.name(value));
    const pick = (list: readonly string[], index: number): string => {
      const found = list[index];
      if (found === undefined) throw new Error(`${node.op}: operand ${index} is missing`);
      return found;
    };
    opTable[node.op].lower({
      attributes: node.attributes,
      inputs,
      outputs: outputs.slice(0, used),
      allOutputs: outputs,
      inputTypes: node.inputs,
      outputTypes: node.outputs,
      input: (index) => pick(inputs, index),
      output: (index) => pick(outputs, index),
      uses: (output) => this.#uses.has(node.outputs[output]?.id ?? -1),
      emit: this.emit.bind(this),
      temps: () => [
        this.fresh(),
        this.fresh(),
        this.fresh(),
        this.fresh(),
        this.fresh(),
        this.fresh(),
        this.fresh(),
        this.fresh(),
      ],
      ints: (values) => this.ints(values),
      intScalar: (value) => this.int64(`int ${value}`, [value], []),
      floats: (values) =>
        this.shared(`floats ${values.join(',')}`, (name) => {
          const raw = new Uint8Array(Float32Array.from(values).buffer);
          this.initializers.push({ name, dtype: onnxDType.float32, dims: [values.length], data: { raw } });
        }),
      byteScalar: (value) =>
        this.shared(`byte ${value}`, (name) => {
          this.initializers.push({ name, dtype: onnxUint8, dims: [], data: { raw: Uint8Array.of(value) } });
        }),
      shared: (key, make) => this.shared(key, make),
      knowsSizes: (shape) => this.knowsSizes(shape),
      shapeVector: (shape) => this.shapeVector(shape),
      reshapeTarget: (from, to) => this.reshapeTarget(from, to),
    });
  }
}

/** Leaves out what no output needs: ExpandLike, for one, reads only the shape of its second input. */
function prune({ nodes, initializers }: Emitter, outputs: readonly string[]): Pick<Emitter, 'nodes' | 'initializers'> {
  const read = new Set(outputs);
  const kept: OnnxNode[] = [];
  for (const node of [...nodes].reverse()) {
    if (!node.outputs.some((name) => read.has(name))) continue;
    for (const name of node.inputs) read.add(name);
    kept.push(node);
  }
  return { nodes: kept.reverse(), initializers: initializers.filter(({ name }) => read.has(name)) };
}

/** Writes the program as an ONNX model. Inputs keep their names; outputs get the names that the program gives them. */
export function lower(program: Program): LoweredProgram {
  const emitter = new Emitter(program);
  for (const node of program.nodes) emitter.lower(node);
  for (const { name, value } of program.outputs) emitter.emit('Identity', [emitter.name(value)], [name]);
  const info = (name: string, value: Value) => ({ name, dtype: onnxDType[value.dtype], shape: value.shape });
  const names = program.outputs.map(({ name }) => name);
  const { nodes, initializers } = prune(emitter, names);
  const bytes = encodeModel({
    nodes,
    initializers,
    inputs: program.inputs.map((value) => info(emitter.name(value), value)),
    outputs: program.outputs.map(({ name, value }) => info(name, value)),
  });
  return { bytes, nodeCount: nodes.length };
}
