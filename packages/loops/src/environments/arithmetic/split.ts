/** Which problems a model is pretrained on, which it is trained on by reward, and which it must never see. */
import { hashText } from '../../random.js';
import type { ArithmeticProblem } from './problems.js';

export const arithmeticSplits = ['pretrain', 'rl', 'held-out'] as const;
export type ArithmeticSplit = (typeof arithmeticSplits)[number];

/** Shares of the hash space. Fixed: the bundled model was pretrained with them. */
const heldOutShare = 0.1;
const rlShare = 0.4;

/**
 * The set of a problem, from a hash of its operands and operation alone: the same in every process, at every level and
 * however it was drawn. `3+4` and `4+3` are in one set, so that neither gives the other away.
 */
export function arithmeticSplit({
  a,
  b,
  operation,
}: Pick<ArithmeticProblem, 'a' | 'b' | 'operation'>): ArithmeticSplit {
  const [first, second] = operation !== '-' && b < a ? [b, a] : [a, b];
  const share = hashText(`${first}${operation}${second}`) / 2 ** 32;
  if (share < heldOutShare) return 'held-out';
  return share < heldOutShare + rlShare ? 'rl' : 'pretrain';
}
