/** Gradients of a graph against central differences, both in float64. */
import { gradients } from '../gradients.js';
import type { Graph, Value } from '../graph.js';
import { type Program, program } from '../program.js';
import { expectClose, tolerance } from './expect-close.js';
import { bindSizes, interpret } from './interpreter.js';
import { seededRandom } from './random.js';
import { build, resolveShape, type Tensor } from './tensor.js';

export interface GradientCheck {
  /** The program that computes the gradients, named by their inputs, and what to feed it. */
  readonly backward: Program;
  readonly feeds: Readonly<Record<string, Tensor>>;
}

const step = 1e-5;

/**
 * Checks d(Σ seed · output) / d input for every element of the named inputs; the seeds are random inputs that it adds to the graph.
 *
 * @throws when a gradient differs from the central difference
 */
export function checkGradients(
  graph: Graph,
  outputs: Readonly<Record<string, Value>>,
  feeds: Readonly<Record<string, Tensor>>,
  wrt: readonly string[],
): GradientCheck {
  const forward = program(graph, outputs);
  const sizes = bindSizes(forward, feeds);
  const random = seededRandom(7);
  const allFeeds: Record<string, Tensor> = { ...feeds };
  const seeds = Object.entries(outputs).map(([name, value]) => {
    const grad = graph.input(`seed of ${name}`, 'float32', value.shape);
    allFeeds[`seed of ${name}`] = build('float32', resolveShape(value.shape, sizes), () =>
      Math.fround(random.uniform() * 2 - 1),
    );
    return { value, grad };
  });
  const targets = wrt.map(
    (name) => graph.inputs.find(({ source }) => source.type === 'input' && source.name === name)!,
  );
  const grads = gradients(seeds, targets);
  const backward = program(graph, Object.fromEntries(wrt.map((name, i) => [name, grads[i]!])));
  const analytic = interpret(backward, allFeeds);

  const objective = (changed: Readonly<Record<string, Tensor>>): number => {
    const results = interpret(forward, { ...allFeeds, ...changed });
    return Object.keys(outputs).reduce((total, name) => {
      const seed = allFeeds[`seed of ${name}`]!;
      return results[name]!.data.reduce((sum, value, i) => sum + value * seed.data[i]!, total);
    }, 0);
  };
  for (const name of wrt) {
    const input = feeds[name]!;
    const moved = (place: number, by: number): number =>
      objective({ [name]: { ...input, data: input.data.map((x, i) => (i === place ? x + by : x)) } });
    const numeric = { ...input, data: input.data.map((_, i) => (moved(i, step) - moved(i, -step)) / (2 * step)) };
    expectClose(analytic[name], numeric, { within: tolerance.finiteDifference, what: `gradient by ${name}` });
  }
  return { backward, feeds: allFeeds };
}
