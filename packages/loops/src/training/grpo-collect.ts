/** The groups of a step: drawn, sampled, scored, judged, and filled up where some teach nothing. */
import type { SampledTokens } from '@loopwright/client';
import type { Tokenizer } from '@loopwright/text';
import type { Environment, Problem } from '../environments/environment.js';
import { mixSeed, type Random } from '../random.js';
import type { Sampler } from './clients.js';
import { type ReferenceScores, scoreGroups, teaches, withPenalties } from './grpo-data.js';
import type { GrpoReference, Resolved } from './grpo-options.js';
import { gradeGroups, type RolloutGroup, sampleGroups } from './rollouts.js';
import type { Scope } from './scope.js';

export interface CollectOptions<P extends Problem> {
  readonly run: Resolved;
  readonly environment: Environment<P>;
  readonly tokenizer: Tokenizer;
  readonly sampler: Sampler;
  readonly random: Random;
  readonly scope: Scope;
  /** From 1. */
  readonly step: number;
  /** Milliseconds since the last call. */
  readonly clock: () => number;
}

export interface Collected<P extends Problem> {
  /** All that was sampled, the groups that teach nothing included. */
  readonly groups: readonly RolloutGroup<P>[];
  /** Undefined when the step measures no distance. */
  readonly reference: ReferenceScores | undefined;
  readonly times: Readonly<Record<string, number>>;
}

/**
 * Draws P problems; then, for as many rounds as are allowed, as many as groups teach nothing.
 *
 * @throws `cancelled`, `grader_failed`, and what the client throws
 * @see arXiv:2503.14476 (DAPO), section 3.2, for the refill
 */
export async function collectGroups<P extends Problem>({
  run,
  environment,
  tokenizer,
  sampler,
  random,
  scope,
  step,
  clock,
}: CollectOptions<P>): Promise<Collected<P>> {
  const groups: RolloutGroup<P>[] = [];
  const scores = new Map<SampledTokens, readonly number[]>();
  const times: Record<string, number> = {};
  const lap = (name: string): void => {
    times[name] = (times[name] ?? 0) + clock();
  };
  for (let round = 0; round <= run.refillRounds; round++) {
    const missing = run.groupsPerStep - groups.filter((group) => teaches(group, run)).length;
    if (missing === 0) break;
    const problems = Array.from({ length: missing }, () => environment.draw(random));
    const sampled = await sampleGroups({
      ...{ sampler, environment, tokenizer, problems, scope },
      ...{ numSamples: run.samplesPerGroup, maxTokens: run.maxTokens, temperature: run.temperature },
      seedOf: (group) => mixSeed(run.seed, step, groups.length + group),
    });
    lap('time/sample_ms');
    if (isMeasured(run, step)) {
      for (const [sample, logprobs] of await scoreGroups(sampled, run.reference.scorer, scope)) {
        scores.set(sample, logprobs);
      }
      lap('time/reference_ms');
    }
    const { maxGraderErrorShare, onGraderError } = run;
    const limits = { maxGraderErrorShare, onGraderError, earlier: groups };
    const judging = { groups: sampled, environment, tokenizer, ...limits, scope };
    groups.push(...withPenalties(await gradeGroups(judging), run));
    lap('time/grade_ms');
  }
  return { groups, reference: isMeasured(run, step) ? scores : undefined, times };
}

function isMeasured(run: Resolved, step: number): run is Resolved & { readonly reference: GrpoReference } {
  return run.reference !== undefined && (step - 1) % run.everySteps === 0;
}
