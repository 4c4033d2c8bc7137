import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DifferentiableLoss, valueAndGrad } from './value-and-grad.js';
import { type Operand, stack, Variable } from './variable.js';

const datum = { modelInput: [1], lossFnInputs: { targetTokens: [1] } };

/** Gradients by central differences; the step suits values around 1. */
function differences(loss: DifferentiableLoss, rows: readonly (readonly number[])[], step = 1e-6): number[][] {
  const valueAt = (at: readonly (readonly number[])[]): number =>
    valueAndGrad(loss)(
      at,
      at.map(() => datum),
    ).loss;
  return rows.map((row, i) =>
    row.map((_, t) => {
      const moved = (by: number) => rows.map((r, j) => r.map((x, u) => (j === i && u === t ? x + by : x)));
      return (valueAt(moved(step)) - valueAt(moved(-step))) / (2 * step);
    }),
  );
}

function expectGradients(loss: DifferentiableLoss, rows: readonly (readonly number[])[]): void {
  const { gradients } = valueAndGrad(loss)(
    rows,
    rows.map(() => datum),
  );
  for (const [i, row] of differences(loss, rows).entries()) {
    for (const [t, wanted] of row.entries()) {
      expect(Math.abs(gradients[i]![t]! - wanted), `gradient [${i}][${t}]`).toBeLessThan(1e-6 * (1 + Math.abs(wanted)));
    }
  }
}

type Operation = (x: Variable, y: Operand) => Variable;

/** Each with where it may be looked at: away from kinks and from where it grows too fast for differences. */
const operations: readonly [string, Operation][] = [
  ['add', (x, y) => x.add(y)],
  ['sub', (x, y) => x.sub(y)],
  ['mul', (x, y) => x.mul(y)],
  ['div', (x, y) => x.div(y)],
  ['min', (x, y) => x.min(y)],
  ['max', (x, y) => x.max(y)],
  ['neg', (x) => x.neg()],
  ['exp', (x) => x.exp()],
  ['expm1', (x) => x.expm1()],
  ['log', (x) => x.square().add(1).log()],
  ['square', (x) => x.square()],
  ['sigmoid', (x) => x.sigmoid()],
  ['logSigmoid', (x) => x.logSigmoid()],
  ['log1mExp', (x) => x.exp().neg().sub(0.1).log1mExp()],
  ['clamp', (x) => x.clamp(-1, 0.5)],
  ['mean', (x, y) => x.mean().mul(y)],
  ['dot', (x, y) => x.dot([1, -2, 0.5]).mul(y)],
  ['stack', (x, y) => stack([x.sum(), x.mean(), x.sum().square()]).mul(y)],
];

/** Numbers away from each other's neighbourhood and from the bounds above, so that no difference straddles a kink. */
const list = fc
  .tuple(fc.constantFrom(0.3, -0.7, 1.4, -1.9), fc.constantFrom(0.11, -0.37, 0.83), fc.constantFrom(2.3, -1.3, 0.7))
  .map((numbers) => [...numbers]);
const other = fc.constantFrom(0.91, -1.17, 2.03);

describe('gradients equal finite differences', () => {
  it.each(operations)('of %s, with variables, lists and numbers on its right', (_, operation) => {
    fc.assert(
      fc.property(list, other, (row, number) => {
        expectGradients(([x]) => operation(x!, number).sum(), [row]);
        expectGradients(([x]) => operation(x!, [number, 1.07, -0.93]).sum(), [row]);
        expectGradients(([x, y]) => operation(x!, y!).sum(), [row, [number, 1.07, -0.93]]);
        expectGradients(([x, y]) => operation(x!, y!).sum(), [row, [number]]);
      }),
      { numRuns: 30, seed: 1 },
    );
  });

  it('of a number on the left of a list', () => {
    expectGradients(([x, y]) => x!.mul(y!).square().sum(), [[0.7], [1, -2, 3]]);
    expectGradients(([x]) => x!.div([1, -2, 3]).exp().sum(), [[0.7]]);
  });

  it('of compositions that use a variable several times', () => {
    const pick = fc.array(fc.integer({ min: 0, max: operations.length - 1 }), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(pick, list, other, (picks, row, number) => {
        const loss: DifferentiableLoss = ([x, y]) => {
          let value = x!.mul(0.5);
          // Sigmoids keep the numbers near 1 and smooth.
          for (const index of picks) value = operations[index]![1](value.sigmoid().add(x!.mul(0.1)), y!);
          return value.mul(x!.add(y!)).sum();
        };
        const rows = [row, [number]];
        const [half, whole] = [differences(loss, rows, 5e-7), differences(loss, rows)];
        // Where two steps disagree, a kink is near.
        fc.pre(
          half.every((r, i) => r.every((slope, t) => Math.abs(slope - whole[i]![t]!) < 1e-6 * (1 + Math.abs(slope)))),
        );
        expectGradients(loss, rows);
      }),
      { numRuns: 200, seed: 1 },
    );
  });
});

describe('values', () => {
  const numberOf = (x: number, operation: (x: Variable) => Variable) => operation(new Variable([x])).value;

  it('keep their digits far out and near 0', () => {
    expect(numberOf(-800, (x) => x.logSigmoid())).toBe(-800);
    expect(numberOf(800, (x) => x.logSigmoid())).toBe(0);
    expect(numberOf(-800, (x) => x.sigmoid())).toBe(0);
    expect(numberOf(800, (x) => x.sigmoid())).toBe(1);
    expect(numberOf(-1e-12, (x) => x.log1mExp())).toBeCloseTo(Math.log(1e-12), 9);
    expect(numberOf(-50, (x) => x.log1mExp())).toBeCloseTo(-Math.exp(-50), 30);
    expect(numberOf(1e-12, (x) => x.expm1())).toBeCloseTo(1e-12, 20);
    const slope = (x: number) => valueAndGrad(([input]) => input!.log1mExp())([[x]], [datum]).gradients[0]![0]!;
    expect(slope(-50) / -Math.exp(-50)).toBeCloseTo(1, 12);
    expect(slope(-1e-9) / -1e9).toBeCloseTo(1, 8);
  });

  it('that weigh 0 are left out, also NaN and infinity', () => {
    const loss = valueAndGrad(([x]) => x!.dot([0, 2, 0]));
    expect(loss([[Number.NaN, 3, Number.NEGATIVE_INFINITY]], [datum])).toMatchObject({
      loss: 6,
      gradients: [Float64Array.of(0, 2, 0)],
    });
  });

  it('behind a stopGradient are constants', () => {
    const { loss, gradients } = valueAndGrad(([x]) => x!.mul(x!.stopGradient()).sum())([[2, 3]], [datum]);
    expect(loss).toBe(13);
    expect(gradients).toEqual([Float64Array.of(2, 3)]);
  });
});

describe('valueAndGrad', () => {
  it('keeps the name and passes metrics and data on', () => {
    const dpo = valueAndGrad(function dpo([x], [given]) {
      return { loss: x!.sum(), metrics: { 'a/b': given!.modelInput.length } };
    });
    expect(dpo.name).toBe('dpo');
    expect(dpo([[1]], [datum]).metrics).toEqual({ 'a/b': 1 });
  });

  it('gives zeros for datums that the loss does not read', () => {
    expect(valueAndGrad(([, y]) => y!.sum())([[1, 2], [3]], [datum, datum]).gradients).toEqual([
      new Float64Array(2),
      Float64Array.of(1),
    ]);
  });

  it('sums ten thousand terms one by one', () => {
    const row = Array.from({ length: 10_000 }, (_, i) => i / 1e4);
    const loss = valueAndGrad((logprobs) => logprobs.reduce((sum, lp) => sum.add(lp.square()), new Variable([0])));
    const { gradients } = loss(
      row.map((x) => [x]),
      row.map(() => datum),
    );
    expect(gradients[5000]![0]).toBe(1);
  });

  it('refuses what is no loss', () => {
    const evaluate = (loss: DifferentiableLoss) => () => valueAndGrad(loss)([[1, 2]], [datum]);
    expect(evaluate(([x]) => x!)).toThrow('loss: expected a variable of one number, got one of 2');
    expect(evaluate(() => 3 as unknown as Variable)).toThrow('got undefined'); // as callers in JavaScript may
    expect(evaluate(() => new Variable([3]))).toThrow('expected a loss that is computed from logprobs, got a constant');
    expect(evaluate(([x]) => x!.stopGradient().sum())).toThrow('got a constant');
    expect(evaluate(([x]) => x!.add([1, 2, 3]).sum())).toThrow('add: expected 2 numbers or one');
    expect(evaluate(([x]) => x!.dot([1]))).toThrow('dot: expected 2 numbers');
    expect(evaluate(([x]) => stack([x!]))).toThrow('value: expected a variable of one number, got a list of 2');
  });
});
