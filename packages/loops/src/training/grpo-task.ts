/** What the GRPO loop asks of a task, be its problems of one answer or of many turns. */
import type { DatumFor } from '@loopwright/protocol';
import type { RlLossName } from '../datums/rl-datum.js';
import type { ReferencedDatum } from '../losses/loss-datum.js';
import type { Random } from '../random.js';
import type { Sampler, Scorer } from './clients.js';
import type { Metrics } from './grpo-metrics.js';
import type { Scope } from './scope.js';

/** Log-probabilities of sampled tokens under the reference, by what was sampled. */
export type ReferenceScores = ReadonlyMap<object, readonly number[]>;

export interface TrainingData {
  readonly data: readonly DatumFor<RlLossName>[];
  /** The same answers for the KL loss, each position weighing what its advantage is divided by; empty without such a loss. */
  readonly near: readonly ReferencedDatum[];
}

/** A round of new groups. */
export interface Round<G> {
  readonly sampler: Sampler;
  readonly scope: Scope;
  /** Of a group of this round, by its index. */
  readonly seedOf: (group: number) => number;
  /** Judged before in this step. */
  readonly earlier: readonly G[];
  /** Notes that a part of the work has ended: `time/sample_ms` and so on. */
  readonly lap: (name: string) => void;
  /** Absent when this step measures no distance. */
  readonly reference: { readonly scorer: Scorer; readonly scores: Map<object, readonly number[]> } | undefined;
}

/** @typeParam G the rollouts of one problem */
export interface GrpoTask<P, G> {
  draw(random: Random): P;
  /** Samples, scores and judges a group for each problem. @throws `cancelled`, what the client throws, and when too many failed */
  round(problems: readonly P[], round: Round<G>): Promise<readonly G[]>;
  /** Whether a group has something to train on. */
  teaches(group: G): boolean;
  data(groups: readonly G[], reference: ReferenceScores | undefined): TrainingData;
  /** Of what was sampled. */
  metrics(groups: readonly G[], reference: ReferenceScores | undefined): Metrics;
  /** What went wrong without ending the run, one line each, without content. */
  warnings(groups: readonly G[]): readonly string[];
}
