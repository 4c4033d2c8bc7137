/** From judged answers to what is trained on. Shapes: P groups, G answers of a group. */
import type { SampledTokens } from '@loopwright/client';
import type { DatumFor } from '@loopwright/protocol';
import { type RlLossName, rlDatum } from '../datums/rl-datum.js';
import { isFailure, type Problem } from '../environments/environment.js';
import type { DatumSource } from '../guard/facts.js';
import type { ReferencedDatum } from '../losses/loss-datum.js';
import { isDead } from '../statistics/advantages.js';
import { klEstimate } from '../statistics/kl.js';
import { lengthDivisors, overlongPenalty } from '../statistics/lengths.js';
import type { Scorer } from './clients.js';
import { rewardsOf } from './grpo-metrics.js';
import type { Resolved } from './grpo-options.js';
import type { ReferenceScores, TrainingData } from './grpo-task.js';
import type { Rollout, RolloutGroup } from './rollouts.js';
import type { Scope } from './scope.js';

interface PromptedSequences {
  readonly prompt: readonly number[];
  readonly sequences: readonly SampledTokens[];
}

/** Log-probabilities of the sampled tokens under the reference, by sample. */
export async function scoreGroups(
  groups: readonly PromptedSequences[],
  scorer: Scorer,
  scope: Scope,
): Promise<ReferenceScores> {
  const samples = groups.flatMap(({ prompt, sequences }) =>
    sequences.filter(({ tokens }) => tokens.length > 0).map((sequence) => ({ prompt, sequence })),
  );
  const scored = await scope.all(
    samples.map(
      ({ prompt, sequence }) =>
        (signal: AbortSignal) =>
          scorer.computeLogprobs([...prompt, ...sequence.tokens], { signal }),
    ),
  );
  return new Map(
    samples.map(({ prompt, sequence }, i) => [
      sequence,
      (scored[i] ?? []).slice(prompt.length).map((logprob) => logprob ?? Number.NaN),
    ]),
  );
}

/** With the rewards of long answers lowered, where that is asked for. */
export function withPenalties<P extends Problem>(
  groups: readonly RolloutGroup<P>[],
  { overlong, maxTokens }: Pick<Resolved, 'overlong' | 'maxTokens'>,
): readonly RolloutGroup<P>[] {
  if (typeof overlong !== 'object') return groups;
  const limits = { maxTokens, buffer: overlong.penalizeLast };
  const lowered = (rollout: Rollout): Rollout => {
    const { grade, reward, sequence } = rollout;
    if (isFailure(grade) || reward === undefined) return rollout; // a floor is what it was set to
    return { ...rollout, reward: reward + overlongPenalty(sequence.tokens.length, limits) };
  };
  return groups.map((group) => ({ ...group, rollouts: group.rollouts.map(lowered) }));
}

/** Whether a group has something to train on. */
export function teaches(group: RolloutGroup<Problem>, { overlong }: Pick<Resolved, 'overlong'>): boolean {
  const judged = group.rollouts.filter(isJudged);
  return !isDead(rewardsOf(judged)) && judged.some((rollout) => isTrained(rollout, overlong));
}

export interface DataOptions
  extends Pick<
    Resolved,
    'advantages' | 'klCoefficient' | 'estimator' | 'placement' | 'lengthNormalization' | 'overlong'
  > {
  readonly reference: ReferenceScores | undefined;
}

/** Datums of the groups that teach something. */
export function trainingData(
  groups: readonly (RolloutGroup<Problem> & { readonly age?: number })[],
  options: DataOptions,
): TrainingData {
  const { advantages, overlong, lengthNormalization } = options;
  const live = groups.filter((group) => teaches(group, options));
  const judged_PG = live.map(({ rollouts }) => rollouts.filter(isJudged));
  const advantages_PG = advantages(judged_PG.map(rewardsOf));
  const trained = live.flatMap(({ prompt }, p) => {
    const answers = judged_PG[p]!.map(({ sequence }, g) => ({
      prompt,
      sequence,
      advantage: advantages_PG[p]?.[g] ?? Number.NaN, // rlDatum refuses what `advantages` left out
    }));
    return [answers.filter((_, g) => isTrained(judged_PG[p]![g]!, overlong))];
  });
  const divisors_PG = lengthDivisors(
    trained.map((answers) => answers.map(({ sequence }) => sequence.tokens.length)),
    lengthNormalization,
  );
  const made = trained.flatMap((answers, p) =>
    answers.map((answer, g) => datumsOf(answer, { ...options, divisor: divisors_PG[p]![g]! })),
  );
  const sources = trained.flatMap((answers, p) =>
    answers.map(({ prompt, sequence: { tokens } }): DatumSource => {
      const { age } = live[p]!;
      const parts = [
        { kind: 'prompt', tokens: prompt },
        { kind: 'sampled', tokens },
      ] as const;
      return { parts, ...(age === undefined ? {} : { age }) };
    }),
  );
  return { data: made.map(({ datum }) => datum), near: made.flatMap(({ near }) => near ?? []), sources };
}

interface Answer {
  readonly prompt: readonly number[];
  readonly sequence: SampledTokens;
  readonly advantage: number;
}

function datumsOf(
  { prompt, sequence, advantage }: Answer,
  {
    reference,
    klCoefficient,
    estimator,
    placement,
    divisor,
  }: Omit<DataOptions, 'advantages'> & { readonly divisor: number },
): { readonly datum: DatumFor<RlLossName>; readonly near?: ReferencedDatum } {
  const scores = reference?.get(sequence);
  const whole = (): DatumFor<RlLossName> => rlDatum({ prompt, sequence, advantage: advantage / divisor });
  if (klCoefficient === 0 || scores === undefined) return { datum: whole() };
  if (placement === 'reward') {
    const penalties = klEstimate(estimator, sequence.logprobs, scores);
    const advantages = penalties.map((penalty) => (advantage - klCoefficient * penalty) / divisor);
    return { datum: rlDatum({ prompt, sequence, advantage: advantages }) };
  }
  const datum = whole();
  const { targetTokens } = datum.lossFnInputs;
  const zeros = new Array<number>(prompt.length - 1).fill(0);
  const weights = [...zeros, ...scores.map(() => 1 / divisor)];
  const near = {
    modelInput: datum.modelInput,
    lossFnInputs: { targetTokens, weights, refLogProb: [...zeros, ...scores] },
  };
  return { datum, near };
}

/** Has a reward, be it the floor of a failed grader. */
function isJudged({ reward, sequence }: Rollout): boolean {
  return reward !== undefined && sequence.tokens.length > 0;
}

function isTrained({ sequence }: Rollout, overlong: Resolved['overlong']): boolean {
  return overlong !== 'mask' || sequence.stopReason !== 'length';
}
