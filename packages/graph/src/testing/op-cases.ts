/** The checks that every operation goes through: value, gradient, compiled gradient, refusals. */
import { expect, it } from 'vitest';
import { compile } from '../compile.js';
import { type DType, Graph, type Value } from '../graph.js';
import { lower } from '../onnx/lowering.js';
import { program } from '../program.js';
import { factors, type Shape } from '../shape.js';
import { checkGradients } from './check-gradients.js';
import { expectClose, tolerance } from './expect-close.js';
import { interpret } from './interpreter.js';
import { type Random, seededRandom } from './random.js';
import { runOnnx } from './run-onnx.js';
import { build, resolveShape, type Sizes, type Tensor } from './tensor.js';

export interface InputSpec {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly draw: (random: Random) => number;
}

/** float32 input, uniform in (low, high); −1.5 to 1.5 by default. */
export function floats(shape: Shape, [low, high]: readonly [number, number] = [-1.5, 1.5]): InputSpec {
  return { dtype: 'float32', shape, draw: (random) => Math.fround(low + (high - low) * random.uniform()) };
}

/** int64 input of ids below `count`; small counts repeat ids. */
export function ids(shape: Shape, count: number): InputSpec {
  return { dtype: 'int64', shape, draw: (random) => random.int(0, count - 1) };
}

/** int8 input, −64 to 64: two products with bytes stay within 16 bits, where some processors add them up. */
export function bytes(shape: Shape): InputSpec {
  return { dtype: 'int8', shape, draw: (random) => random.int(-64, 64) };
}

export function bools(shape: Shape): InputSpec {
  return { dtype: 'bool', shape, draw: (random) => random.int(0, 1) };
}

export interface OpCase {
  readonly inputs: Readonly<Record<string, InputSpec>>;
  /** Named sizes at run time; a name that is missing here is drawn from 1 to 3. */
  readonly sizes?: Sizes;
  readonly outputs: (inputs: Readonly<Record<string, Value>>) => Readonly<Record<string, Value>>;
  /** Outputs that gradients start from; all float32 ones by default. */
  readonly differentiate?: readonly string[];
  /** Inputs that gradients are taken by; none for operations without a gradient. */
  readonly wrt: readonly string[];
}

function drawFeeds({ inputs, sizes = {} }: OpCase, random: Random): Record<string, Tensor> {
  const bound: Record<string, number> = { ...sizes };
  for (const { shape } of Object.values(inputs)) {
    for (const name of shape.flatMap((dim) => factors(dim).names)) bound[name] ??= random.int(1, 3);
  }
  return Object.fromEntries(
    Object.entries(inputs).map(([name, { dtype, shape, draw }]) => [
      name,
      build(dtype, resolveShape(shape, bound), () => draw(random)),
    ]),
  );
}

function makeGraph({ inputs }: OpCase): { graph: Graph; values: Record<string, Value> } {
  const graph = new Graph();
  const values = Object.fromEntries(
    Object.entries(inputs).map(([name, { dtype, shape }]) => [name, graph.input(name, dtype, shape)]),
  );
  return { graph, values };
}

async function checkCase(opCase: OpCase, random: Random): Promise<void> {
  const { graph, values } = makeGraph(opCase);
  const outputs = opCase.outputs(values);
  const feeds = drawFeeds(opCase, random);
  const reference = interpret(program(graph, outputs), feeds);
  for (const [how, model] of [
    ['lowered as written', lower(program(graph, outputs))],
    ['compiled', compile(graph, outputs)],
  ] as const) {
    const results = await runOnnx(model, feeds);
    for (const name of Object.keys(outputs))
      expectClose(results[name], reference[name], { within: tolerance.float32, what: `${name}, ${how}` });
  }
  if (opCase.wrt.length === 0) return;
  const starts = Object.entries(outputs).filter(
    ([name, { dtype }]) => opCase.differentiate?.includes(name) ?? dtype === 'float32',
  );
  const { backward, feeds: allFeeds } = checkGradients(graph, Object.fromEntries(starts), feeds, opCase.wrt);
  const expected = interpret(backward, allFeeds);
  const byName = Object.fromEntries(backward.outputs.map(({ name, value }) => [`d ${name}`, value]));
  const results = await runOnnx(compile(graph, byName), allFeeds);
  for (const { name } of backward.outputs)
    expectClose(results[`d ${name}`], expected[name], {
      within: tolerance.float32,
      what: `compiled gradient by ${name}`,
    });
}

/** Declares a test that draws the case's shapes and numbers `rounds` times, from fixed seeds. */
export function itComputes(title: string, makeCase: (random: Random) => OpCase, { rounds = 3 } = {}): void {
  it(title, async () => {
    for (let round = 0; round < rounds; round++) {
      const random = seededRandom(1000 + round);
      await checkCase(makeCase(random), random);
    }
  });
}

/** Declares a test that the shape rule refuses some inputs with a message in which all the given texts occur. */
export function itRefuses(
  title: string,
  inputs: Readonly<Record<string, Pick<InputSpec, 'dtype' | 'shape'>>>,
  apply: (inputs: Readonly<Record<string, Value>>) => unknown,
  texts: readonly string[],
): void {
  it(`refuses ${title}`, () => {
    const graph = new Graph();
    const values = Object.fromEntries(
      Object.entries(inputs).map(([name, { dtype, shape }]) => [name, graph.input(name, dtype, shape)]),
    );
    let message = 'nothing was thrown';
    try {
      apply(values);
    } catch (error) {
      message = error instanceof Error ? error.message : 'not an error';
    }
    for (const text of texts) expect(message).toContain(text);
  });
}

/** Two shapes that broadcast, by random: named and numbered axes, some stretched, one perhaps missing. */
export function broadcastPair(random: Random): readonly [Shape, Shape] {
  const full: Shape = ['B', random.int(1, 3), 'S', random.int(1, 4)].slice(random.int(0, 3));
  const stretched = (shape: Shape): Shape => shape.map((dim) => (random.int(0, 2) === 0 ? 1 : dim));
  const pair = [full, stretched(full).slice(random.int(0, full.length))] as const;
  return random.int(0, 1) === 0 ? pair : [pair[1], pair[0]];
}
