/** What the GRPO loop asks of a task, be its problems of one answer or of many turns. */
import type { DatumFor } from '@loopwright/protocol';
import type { RlLossName } from '../datums/rl-datum.js';
import type { DatumSource } from '../guard/facts.js';
import type { ReferencedDatum } from '../losses/loss-datum.js';
import type { Random } from '../random.js';
import type { Sampler, Scorer } from './clients.js';
import type { Evaluation } from './evaluate.js';
import type { Metrics } from './grpo-metrics.js';
import type { GroupSeeds } from './problem-stream.js';
import type { Scope } from './scope.js';
import type { ValidationOptions } from './validation.js';

/** Log-probabilities of sampled tokens under the reference, by what was sampled. */
export type ReferenceScores = ReadonlyMap<object, readonly number[]>;

export interface TrainingData {
  readonly data: readonly DatumFor<RlLossName>[];
  /** The same answers for the KL loss, each position weighing what its advantage is divided by; empty without such a loss. */
  readonly near: readonly ReferencedDatum[];
  /** What each datum was made of. */
  readonly sources: readonly DatumSource[];
}

/** What takes time in the making of a group. */
export type GroupPhase = 'sample' | 'reference' | 'grade';

/** How a group is to be made. */
export interface GroupWork {
  readonly sampler: Sampler;
  readonly scope: Scope;
  readonly seeds: GroupSeeds;
  /** Notes from when to when a part of the work went on. */
  readonly timed: <T>(phase: GroupPhase, work: () => Promise<T>) => Promise<T>;
  /** Absent when no distance is measured. */
  readonly reference: { readonly scorer: Scorer; readonly scores: Map<object, readonly number[]> } | undefined;
}

/** How problems that aren't trained on are to be answered. */
export interface EvaluationWork<P> extends ValidationOptions<P> {
  readonly sampler: Sampler;
  readonly signal: AbortSignal;
}

/**
 * @typeParam G the rollouts of one problem
 * @typeParam A one answer, or episode, of an evaluation
 */
export interface GrpoTask<P, G, A = unknown> {
  draw(random: Random): P;
  /** Samples, scores and judges the group of a problem. @throws `cancelled`, and what the client throws */
  group(problem: P, work: GroupWork): Promise<G>;
  /** @throws when too many of what these groups hold could not be judged */
  check(groups: readonly G[]): void;
  /** Whether a group has something to train on. */
  teaches(group: G): boolean;
  data(groups: readonly G[], reference: ReferenceScores | undefined): TrainingData;
  /** Of what was sampled. */
  metrics(groups: readonly G[], reference: ReferenceScores | undefined): Metrics;
  /** One greedy answer, or episode, to each problem. @throws when too many could not be judged */
  evaluate(work: EvaluationWork<P>): Promise<Evaluation<P, A>>;
  /** What went wrong without ending the run, one line each, without content. */
  warnings(groups: readonly G[]): readonly string[];
}
