/** Which of an episode's rewards a turn of it is credited with. */
import { complaint } from '@loopwright/protocol';
import { isFailure } from '../environments/environment.js';
import type { EpisodeProblem } from '../episodes/environment.js';
import type { EpisodeRollout } from '../episodes/run-episode.js';
import { isDead } from '../statistics/advantages.js';
import { checkDiscount, turnAdvantages, turnsOf } from '../statistics/turn-credit.js';
import { rewardsOf } from './grpo-metrics.js';
import type { Resolved } from './grpo-options.js';

/**
 * - `episode`: every turn has the advantage of the whole episode's reward
 * - `turn`: each turn has its own, by the rewards from it on ({@link turnAdvantages}); `{ discount }` counts later ones less, `turn` is a discount of 1
 */
export type Credit = 'episode' | 'turn' | { readonly discount: number };

type Rollouts = readonly EpisodeRollout<EpisodeProblem>[];

/** @throws `invalid_argument` */
export function checkCredit(credit: Credit): void {
  if (credit === 'episode' || credit === 'turn') return;
  if (credit === null || typeof credit !== 'object')
    throw complaint({ field: 'options.credit', expected: '`episode`, `turn` or { discount }', got: String(credit) });
  checkDiscount(credit.discount, 'options.credit.discount');
}

/** An advantage for each turn of each judged episode. */
export function creditedAdvantages(
  judged_PG: readonly Rollouts[],
  { credit, advantages }: { readonly credit: Credit } & Pick<Resolved, 'advantages'>,
): number[][][] {
  const discount = discountOf(credit);
  if (discount !== undefined)
    return turnAdvantages(
      judged_PG.map((rollouts) => rollouts.map(turnRewards)),
      { discount, advantages },
    );
  const advantages_PG = advantages(judged_PG.map(rewardsOf));
  // episodeDatums refuses what `advantages` left out
  return judged_PG.map((rollouts, p) =>
    rollouts.map(({ turns }, g) => turns.map(() => advantages_PG[p]?.[g] ?? Number.NaN)),
  );
}

/** Whether the judged episodes of a group are all worth the same, at every turn where turns are credited. */
export function areEqual(judged: Rollouts, credit: Credit): boolean {
  const discount = discountOf(credit);
  if (discount === undefined) return isDead(rewardsOf(judged));
  const { all, dead } = turnsOf(judged.map(turnRewards), discount);
  return all === dead;
}

/** Turn indices of the groups, and how many of them teach nothing; undefined where episodes are credited as a whole. */
export function turnCounts(judged_PG: readonly Rollouts[], credit: Credit): { all: number; dead: number } | undefined {
  const discount = discountOf(credit);
  if (discount === undefined) return undefined;
  const counts = judged_PG.map((judged) => turnsOf(judged.map(turnRewards), discount));
  const sum = (of: (one: { all: number; dead: number }) => number): number => counts.reduce((n, one) => n + of(one), 0);
  return { all: sum(({ all }) => all), dead: sum(({ dead }) => dead) };
}

function discountOf(credit: Credit): number | undefined {
  if (credit === 'episode') return undefined;
  return credit === 'turn' ? 1 : credit.discount;
}

/** What each turn earned; they add up to the episode's reward. A floor stands for all of them, and is the last one's. */
function turnRewards({ turns, grade, reward = 0 }: Rollouts[number]): number[] {
  const floored = grade === undefined || isFailure(grade);
  const last = floored ? reward : grade.reward;
  return turns.map((turn, t) => (floored ? 0 : turn.reward) + (t === turns.length - 1 ? last : 0));
}
