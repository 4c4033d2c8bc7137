/**
 * WaitFor: the value itself, but not before the others are there. It says in which order a program is to run where the values alone
 * leave that open: the runtime goes by what is read, and would make early, and keep, what is meant to be made late.
 *
 * Costs nothing: a Reshape to the shape that the value has, which copies nothing, and reads an empty piece of each other's shape. The
 * runtime folds shapes that it knows when it loads a program, so at least one size of each other value must be named.
 */
import type { Value } from '../graph.js';
import { at, type OpDefinition, onlyGrad } from './definition.js';

export const WaitFor: OpDefinition = {
  infer: (inputs) => [{ dtype: at(inputs, 0).dtype, shape: at(inputs, 0).shape }],
  gradient: ({ grads }) => [onlyGrad(grads)],
  lower: (to) => {
    const others = to.inputs.slice(1);
    const rank = at(to.inputTypes, 0).shape.length;
    const target = to.shared(`${rank} sizes after ${others.join(' ')}`, (name) => {
      const nothing = others.map((other) =>
        to.shared(`nothing of ${other}`, (empty) =>
          to.emit('Shape', [other], [empty], { start: { int: 0 }, end: { int: 0 } }),
        ),
      );
      // A size of 0 stands for the size that is there.
      to.emit('Concat', [to.ints(new Array<number>(rank).fill(0)), ...nothing], [name], { axis: { int: 0 } });
    });
    to.emit('Reshape', [to.input(0), target], to.outputs);
  },
};

/** `a` itself, which whoever reads it gets once all `others` are computed. */
export function waitFor(a: Value, others: readonly Value[]): Value {
  const distinct = [...new Set(others)].filter((other) => other !== a);
  return distinct.length === 0 ? a : a.graph.apply('WaitFor', [a, ...distinct])[0]!;
}
