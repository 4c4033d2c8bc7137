/**
 * Advantages from rewards, group by group. Shapes: P prompts (one row each), G samples of a prompt; rows may differ in length.
 *
 * A group whose rewards are all equal says nothing about which sample was better: its advantages are exactly 0, where plain
 * arithmetic would leave residues of 1e-17 that a division could blow up.
 */
import { complaint } from '@loopwright/protocol';

/** Keeps the division finite; TRL and verl use values from 1e-8 to 1e-4. */
const epsilon = 1e-8;

type Rewards = readonly (readonly number[])[];

/**
 * Each reward minus the mean of its group.
 *
 * @param rewards_PG finite, unitless
 * @returns same shape; every row sums to 0 up to rounding
 * @throws `invalid_argument` when a row is empty or a reward is not finite
 * @see arXiv:2402.03300 (GRPO), here without the division by the standard deviation; arXiv:2503.20783 (Dr. GRPO)
 */
export function centerRewards(rewards_PG: Rewards): number[][] {
  return mapGroups(rewards_PG, (rewards_G) => {
    const average = mean(rewards_G);
    return rewards_G.map((reward) => reward - average);
  });
}

/**
 * Each reward minus the mean of its group, divided by (population standard deviation + 1e-8).
 *
 * @param rewards_PG finite, unitless
 * @returns same shape
 * @throws `invalid_argument` when a row is empty or a reward is not finite
 * @see arXiv:2402.03300 (GRPO), equation 3
 */
export function normalizeRewards(rewards_PG: Rewards): number[][] {
  return mapGroups(rewards_PG, (rewards_G) => {
    const average = mean(rewards_G);
    const deviation = populationStd(rewards_G);
    return rewards_G.map((reward) => (reward - average) / (deviation + epsilon));
  });
}

/**
 * Each reward minus the mean of the others in its group; 0 in a group of one, which has no others.
 *
 * @param rewards_PG finite, unitless
 * @returns same shape
 * @throws `invalid_argument` when a row is empty or a reward is not finite
 * @see arXiv:2402.14740 (RLOO)
 */
export function leaveOneOutRewards(rewards_PG: Rewards): number[][] {
  return mapGroups(rewards_PG, (rewards_G) => {
    const sum = total(rewards_G);
    return rewards_G.map((reward) => reward - (sum - reward) / (rewards_G.length - 1));
  });
}

function mapGroups(rewards_PG: Rewards, advantagesOf: (rewards_G: readonly number[]) => number[]): number[][] {
  return rewards_PG.map((rewards_G, p) => {
    if (rewards_G.length === 0) {
      throw complaint({
        field: `rewards[${p}]`,
        expected: 'at least one reward',
        got: 'an empty group',
        remedy: 'leave groups without graded samples out',
      });
    }
    for (const [g, reward] of rewards_G.entries()) {
      if (typeof reward !== 'number' || !Number.isFinite(reward)) {
        throw complaint({
          field: `rewards[${p}][${g}]`,
          expected: 'a finite number',
          got: typeof reward === 'number' ? String(reward) : typeof reward,
          remedy: 'leave samples that could not be graded out',
        });
      }
    }
    return isDead(rewards_G) ? rewards_G.map(() => 0) : advantagesOf(rewards_G);
  });
}

/** Whether all rewards of a group are equal, so that it teaches nothing. */
export function isDead(rewards_G: readonly number[]): boolean {
  return rewards_G.every((reward) => reward === rewards_G[0]);
}

/** How many groups teach nothing: their rewards are all equal, or there are none. */
export function deadGroups(rewards_PG: Rewards): number {
  return rewards_PG.filter(isDead).length;
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

/** Arithmetic mean; NaN of nothing. */
export function mean(values: readonly number[]): number {
  return total(values) / values.length;
}

/** Population standard deviation (divisor n); NaN of nothing. */
export function populationStd(values: readonly number[]): number {
  const average = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - average) ** 2)));
}
