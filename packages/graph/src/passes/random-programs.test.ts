/** Random chains of operations: passes and lowering change no number. */
import fc from 'fast-check';
import { describe, it } from 'vitest';
import { optimize } from '../compile.js';
import { gradients } from '../gradients.js';
import { Graph, type Value } from '../graph.js';
import { lower } from '../onnx/lowering.js';
import { add } from '../ops/add.js';
import { concat } from '../ops/concat.js';
import { div } from '../ops/div.js';
import { exp } from '../ops/exp.js';
import { lessOrEqual } from '../ops/less-or-equal.js';
import { logSoftmax } from '../ops/log-softmax.js';
import { matMul } from '../ops/mat-mul.js';
import { max } from '../ops/max.js';
import { min } from '../ops/min.js';
import { mul } from '../ops/mul.js';
import { neg } from '../ops/neg.js';
import { reduceMean } from '../ops/reduce-mean.js';
import { reduceSum } from '../ops/reduce-sum.js';
import { reshape } from '../ops/reshape.js';
import { rmsNorm } from '../ops/rms-norm.js';
import { sigmoid } from '../ops/sigmoid.js';
import { slice } from '../ops/slice.js';
import { softmax } from '../ops/softmax.js';
import { sub } from '../ops/sub.js';
import { transpose } from '../ops/transpose.js';
import { where } from '../ops/where.js';
import { type Program, program } from '../program.js';
import { expectClose, tolerance } from '../testing/expect-close.js';
import { interpret } from '../testing/interpreter.js';
import { seededRandom } from '../testing/random.js';
import { runOnnx } from '../testing/run-onnx.js';
import { build, type Tensor } from '../testing/tensor.js';

interface Operands {
  /** Values of shape [B, 4, 4] made so far. */
  readonly a: Value;
  readonly b: Value;
  readonly leaf: Value;
  readonly weight: Value;
  /** A power of two, so that folding it with others is exact in float32. */
  readonly scalar: Value;
}

/** Every step takes and gives [B, 4, 4] and keeps numbers of the size of its inputs. */
const smoothSteps: readonly ((operands: Operands) => Value)[] = [
  ({ a, b }) => add(a, b),
  ({ a, b }) => sub(a, b),
  ({ a, b }) => mul(softmax(a), b),
  ({ a, b }) => div(a, add(exp(sigmoid(b)), b.graph.scalar(1))),
  ({ a }) => mul(a, sigmoid(a)),
  ({ a, scalar }) => mul(scalar, a),
  ({ a, scalar }) => add(mul(a, a.graph.scalar(1)), mul(scalar, a.graph.scalar(0))),
  ({ a, b, scalar }) => mul(matMul(softmax(a), b), mul(scalar, a.graph.scalar(0.5))),
  ({ a, b }) => matMul(softmax(a), transpose(b, [0, 2, 1])),
  ({ a, b }) => matMul(transpose(softmax(a), [0, 2, 1]), b, { alpha: 0.25 }),
  ({ a, weight }) => matMul(a, transpose(weight, [1, 0]), { alpha: 0.25 }),
  ({ a }) => transpose(transpose(a, [0, 2, 1]), [0, 2, 1]),
  ({ a }) => transpose(a, [0, 2, 1]),
  ({ a, weight }) => rmsNorm(a, reshape(slice(weight, 0, 1, 2), [4]), 0.5),
  ({ a, scalar }) => mul(logSoftmax(a), mul(scalar, scalar)),
  ({ a }) => sub(a, reduceMean(a, [1], { keepDims: true })),
  ({ a, b }) => add(mul(reduceSum(a, [2], { keepDims: true }), a.graph.scalar(0.25)), b),
  ({ a, b }) => concat([slice(a, 2, 1, 4), slice(b, 2, 0, 1)], 2),
  ({ a }) => reshape(reshape(neg(a), ['4*B', 4]), ['B', 4, 4]),
];

/** Steps with kinks: their conditions compare inputs only, so that rounding cannot flip them. */
const kinkedSteps: readonly ((operands: Operands) => Value)[] = [
  ({ a, b }) => min(a, b),
  ({ a, b }) => max(a, b),
  ({ a, b, leaf, scalar }) => where(lessOrEqual(leaf, scalar), a, b),
];

interface Choice {
  readonly step: number;
  readonly a: number;
  readonly b: number;
  readonly scalar: number;
}

const choices = fc.array(
  fc.record({ step: fc.nat(), a: fc.nat(), b: fc.nat(), scalar: fc.integer({ min: -2, max: 1 }) }),
  { minLength: 2, maxLength: 9 },
);

function makeGraph(list: readonly Choice[], steps: typeof smoothSteps): { graph: Graph; leaf: Value; last: Value } {
  const graph = new Graph();
  const [x, y] = [graph.input('x', 'float32', ['B', 4, 4]), graph.input('y', 'float32', ['B', 4, 4])];
  const weight = graph.input('weight', 'float32', [4, 4]);
  const made: Value[] = [x, y];
  for (const { step, a, b, scalar } of list) {
    const operands = {
      a: made[made.length - 1 - (a % 2)]!, // mostly the newest ones, so that chains get long
      b: made[b % made.length]!,
      leaf: x,
      weight,
      scalar: graph.scalar(2 ** scalar),
    };
    made.push(steps[step % steps.length]!(operands));
  }
  return { graph, leaf: x, last: made.at(-1)! };
}

function makeFeeds(): Record<string, Tensor> {
  const random = seededRandom(5);
  const draw = () => Math.fround(random.uniform() * 2 - 1);
  return {
    x: build('float32', [2, 4, 4], draw),
    y: build('float32', [2, 4, 4], draw),
    weight: build('float32', [4, 4], draw),
  };
}

const feeds = makeFeeds();

function expectSameResults(actual: Record<string, Tensor>, original: Program, within: number): void {
  const expected = interpret(original, feeds);
  for (const name of Object.keys(expected)) {
    expectClose(actual[name], expected[name], { within, what: name, byLargest: true });
  }
}

describe('random programs', () => {
  it('give the same numbers after the passes', () => {
    const property = fc.property(choices, (list) => {
      const { graph, last } = makeGraph(list, [...smoothSteps, ...kinkedSteps]);
      const original = program(graph, { result: last });
      expectSameResults(interpret(optimize(original), feeds), original, tolerance.float64);
    });
    fc.assert(property, { seed: 11, numRuns: 150 });
  });

  it('give the same gradients after the passes', () => {
    const property = fc.property(choices, (list) => {
      const { graph, last, leaf } = makeGraph(list, smoothSteps);
      // The leaf itself is added, so that the gradient exists whatever the chain reads.
      const [grad] = gradients([{ value: add(last, leaf), grad: graph.inputs[1]! }], [leaf]);
      const original = program(graph, { grad: grad! });
      expectSameResults(interpret(optimize(original), feeds), original, tolerance.float64);
    });
    fc.assert(property, { seed: 12, numRuns: 60 });
  });

  it('give the same numbers when lowered and run, with and without the passes', async () => {
    const property = fc.asyncProperty(choices, fc.boolean(), async (list, optimized) => {
      const { graph, last, leaf } = makeGraph(list, smoothSteps);
      const [grad] = gradients([{ value: add(last, leaf), grad: graph.inputs[1]! }], [leaf]);
      const original = program(graph, { result: last, grad: grad! });
      const results = await runOnnx(lower(optimized ? optimize(original) : original), feeds);
      expectSameResults(results, original, tolerance.float32Chain);
    });
    await fc.assert(property, { seed: 13, numRuns: 40 });
  });

  it('give the same numbers when lowered and run, with kinks', async () => {
    const property = fc.asyncProperty(choices, async (list) => {
      const { graph, last } = makeGraph(list, [...smoothSteps, ...kinkedSteps]);
      const original = program(graph, { result: last });
      expectSameResults(await runOnnx(lower(optimize(original)), feeds), original, tolerance.float32Chain);
    });
    await fc.assert(property, { seed: 14, numRuns: 40 });
  });
});
