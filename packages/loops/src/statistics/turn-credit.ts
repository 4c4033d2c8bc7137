/** Advantages of single turns, from what each turn earned. Shapes: P problems, G episodes of each, T turns of an episode (they may differ). */
import { complaint } from '@loopwright/protocol';
import { checkNumbers } from '../datums/checks.js';
import { centerRewards, isDead } from './advantages.js';

/**
 * What each turn led to: R_t = r_t + γ·R_{t+1}, from the last one back. Rewards that came before a turn are not in it: it didn't earn them.
 *
 * @param rewards_T of the turns of one episode, the reward of its grade with the last one; finite
 * @param discount γ, 0 to 1; default 1
 * @returns T
 * @throws `invalid_argument`
 * @see Sutton and Barto, Reinforcement Learning (2nd edition), equations 3.8 and 13.8 (REINFORCE)
 */
export function returnsToGo(rewards_T: readonly number[], discount = 1): number[] {
  checkDiscount(discount, 'discount');
  const returns = checkNumbers(rewards_T, { field: 'rewards', length: rewards_T.length, of: 'turns' });
  for (let t = returns.length - 2; t >= 0; t--) returns[t]! += discount * returns[t + 1]!;
  return returns;
}

export interface TurnAdvantagesOptions {
  /** γ, 0 to 1; default 1. */
  readonly discount?: number;
  /** From rows of returns to advantages of the same shape; default {@link centerRewards}. */
  readonly advantages?: (rows: readonly (readonly number[])[]) => number[][];
}

/**
 * An advantage for each turn: A_gt = R_gt − mean of R_ht over those episodes h of the group that came to a turn t, with R the
 * {@link returnsToGo}. So a turn is compared with the turns of the same index, be they of another past; where an episode is alone at
 * an index, or all returns are equal, the advantage is exactly 0.
 *
 * Whether an episode comes to turn t is settled before it answers there, so the mean is a baseline that leaves the expected gradient
 * as it is, up to the factor 1 − 1/n of n episodes that {@link centerRewards} has with whole episodes too.
 *
 * @param rewards_PGT what each turn earned, the reward of the grade with the last one
 * @returns same shape
 * @throws `invalid_argument`
 * @see arXiv:2402.03300 (GRPO), section 4.1.3, which also credits a step with what follows it, but centres the rewards of all steps of a
 * group together; arXiv:2505.11821 for advantages of single turns
 */
export function turnAdvantages(
  rewards_PGT: readonly (readonly (readonly number[])[])[],
  { discount = 1, advantages = centerRewards }: TurnAdvantagesOptions = {},
): number[][][] {
  const returns_PGT = rewards_PGT.map((rewards_GT) => rewards_GT.map((rewards_T) => returnsToGo(rewards_T, discount)));
  const judged = advantages(returns_PGT.flatMap(returnsByTurn));
  let first = 0; // row of a group's first turns
  return returns_PGT.map((returns_GT) => {
    const rows = judged.slice(first, first + turnsAtMost(returns_GT)).map((row) => row[Symbol.iterator]());
    first += turnsAtMost(returns_GT);
    return returns_GT.map((returns_T) => returns_T.map((_, t): number => rows[t]?.next().value ?? Number.NaN));
  });
}

/** How many turn indices of a group there are, and at how many of them all returns are equal. */
export function turnsOf(rewards_GT: readonly (readonly number[])[], discount: number): { all: number; dead: number } {
  const rows = returnsByTurn(rewards_GT.map((rewards_T) => returnsToGo(rewards_T, discount)));
  return { all: rows.length, dead: rows.filter(isDead).length };
}

/** A row for each turn index: the returns of the episodes that came to it, in their order. */
function returnsByTurn(returns_GT: readonly (readonly number[])[]): number[][] {
  return Array.from({ length: turnsAtMost(returns_GT) }, (_, t) =>
    returns_GT.flatMap((returns_T) => returns_T.slice(t, t + 1)),
  );
}

function turnsAtMost(returns_GT: readonly (readonly number[])[]): number {
  return returns_GT.reduce((most, { length }) => Math.max(most, length), 0);
}

/** @throws `invalid_argument` */
export function checkDiscount(discount: number, field: string): void {
  if (!(discount >= 0 && discount <= 1)) throw complaint({ field, expected: 'from 0 to 1', got: String(discount) });
}
