/** Advantages of single steps, from rewards along the way and a critic's values. */
import { complaint } from '@loopwright/protocol';
import { checkNumbers } from '../datums/checks.js';

export interface GaeOptions {
  /** T rewards, in order. */
  readonly rewards: ArrayLike<number>;
  /** T: what a critic expected at each step. */
  readonly values: ArrayLike<number>;
  /** T: whether an episode ends with the step, so that nothing flows back over it; default: the last one only. */
  readonly dones?: readonly boolean[];
  /** What the critic expects after the last step, where it was cut off rather than done; default 0. */
  readonly lastValue?: number;
  /** γ, 0 to 1; default 1. */
  readonly discount?: number;
  /** λ, 0 (one step ahead) to 1 (all of the rewards); default 0.95. */
  readonly lambda?: number;
}

export interface GaeResult {
  /** T. */
  readonly advantages: number[];
  /** T: advantage + value, what the critic should have said. */
  readonly returns: number[];
}

/**
 * Generalised advantage estimation: δ_t = r_t + γ·V_{t+1}·(1 − done_t) − V_t, A_t = δ_t + γλ·(1 − done_t)·A_{t+1}. Nothing is
 * whitened.
 *
 * @throws `invalid_argument` for lists of different lengths, numbers that are not finite, γ or λ outside 0 to 1
 * @see arXiv:1506.02438 (GAE), equations 11, 12 and 16
 */
export function generalizedAdvantages({
  rewards,
  values,
  dones,
  lastValue = 0,
  discount = 1,
  lambda = 0.95,
}: GaeOptions): GaeResult {
  const length = rewards.length;
  const r = checkNumbers(rewards, { field: 'rewards', length, of: 'rewards' });
  const v = checkNumbers(values, { field: 'values', length, of: 'rewards' });
  const ends = dones ?? r.map((_, t) => t === length - 1);
  if (ends.length !== length) {
    throw complaint({ field: 'dones', expected: `${length} booleans, one for each of rewards`, got: `${ends.length}` });
  }
  checkNumbers([lastValue], { field: 'lastValue', length: 1, of: 'ends' });
  for (const [field, value] of Object.entries({ discount, lambda })) {
    if (!(value >= 0 && value <= 1)) throw complaint({ field, expected: 'from 0 to 1', got: String(value) });
  }
  const advantages = new Array<number>(length).fill(0);
  let [next, nextValue] = [0, lastValue];
  for (let t = length - 1; t >= 0; t--) {
    const goesOn = ends[t] === true ? 0 : 1;
    const delta = r[t]! + discount * nextValue * goesOn - v[t]!;
    next = delta + discount * lambda * goesOn * next;
    nextValue = v[t]!;
    advantages[t] = next;
  }
  return { advantages, returns: advantages.map((advantage, t) => advantage + v[t]!) };
}
