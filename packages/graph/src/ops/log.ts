/** Log: ln a. d/da = 1/a. */
import type { Value } from '../graph.js';
import { at, onlyGrad } from './definition.js';
import { div } from './div.js';
import { unary } from './elementwise.js';

export const Log = unary('Log', ({ inputs, grads }) => [div(onlyGrad(grads), at(inputs, 0))]);

export function log(a: Value): Value {
  return a.graph.apply('Log', [a])[0]!;
}
