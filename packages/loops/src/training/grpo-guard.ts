/** The guard of a GRPO run: what the loop knows of a step, as the guard wants it. */
import type { Alarm } from '../guard/alarm.js';
import type { StepFacts } from '../guard/facts.js';
import { groupFacts } from '../guard/loop-facts.js';
import type { SampledRollouts } from '../runs/run-samples.js';
import type { GroupOrigin, Resolved } from './grpo-options.js';
import { LoopGuard } from './loop-guard.js';
import type { Policy } from './rollout-pool.js';

export interface GrpoGuardOptions {
  readonly run: Resolved;
  /** How many problems an epoch has; undefined where they are drawn. */
  readonly problems: number | undefined;
  /** Epochs before it began in another process, so this one can't know which of their problems were taken. */
  readonly wholeEpochsFrom: number;
}

export interface GrpoFacts<G>
  extends Pick<StepFacts, 'step' | 'metrics' | 'validation' | 'data' | 'sources' | 'outputs' | 'update'> {
  readonly groups: readonly (G & GroupOrigin)[];
  /** The newest that the step could sample from. */
  readonly policy: Policy;
}

export class GrpoGuard extends LoopGuard {
  readonly #options: GrpoGuardOptions;
  #dropped = 0;

  constructor(options: GrpoGuardOptions) {
    const { guard, onNotice, maxStepsOffPolicy, maxGraderErrorShare } = options.run;
    super({
      guard,
      onNotice,
      limits: {
        'guard/stale-sampler': { maxStepsOffPolicy },
        'guard/sampler-never-refreshed': { maxStepsOffPolicy },
        'guard/grader-failing': { stopShare: maxGraderErrorShare },
      },
    });
    this.#options = options;
  }

  lookAt<G extends SampledRollouts>({ groups, policy, ...facts }: GrpoFacts<G>): readonly Alarm[] {
    const { run, problems, wholeEpochsFrom } = this.#options;
    this.#dropped += facts.metrics?.['groups/dropped'] ?? 0;
    const epochOf = ({ problemIndex }: GroupOrigin): number => Math.floor(problemIndex / (problems ?? 1));
    const known = groups.filter((group) => epochOf(group) >= wholeEpochsFrom);
    const rows =
      problems === undefined
        ? {}
        : {
            rows: {
              keys: known.map(({ problem }) => problem.id),
              epochs: known.map(epochOf),
              of: problems,
              slack: (run.maxStepsOffPolicy + 1) * run.groupsPerStep,
              dropped: this.#dropped,
            },
          };
    return this.look({
      ...facts,
      ...rows,
      groups: groups.map(groupFacts),
      sampling: { temperature: run.temperature },
      sampler: policy.sampler,
      learningRate: run.learningRate,
    });
  }
}
