/** When a reward counts as right. */

/** Sums of weights such as ten tenths come out a little below what they are on paper: 0.9999999999999999. */
const rounding = 1e-9;

/** Whether a reward is `correctReward` or more, but for rounding. */
export function isCorrect(reward: number, correctReward: number): boolean {
  return reward >= correctReward - rounding * Math.max(1, Math.abs(correctReward));
}
