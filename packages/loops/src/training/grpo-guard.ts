/** The guard of a GRPO run: what the loop knows of a step, as the guard wants it. */
import type { Alarm } from '../guard/alarm.js';
import type { StepFacts } from '../guard/facts.js';
import { groupFacts } from '../guard/loop-facts.js';
import type { SampledRollouts } from '../runs/run-samples.js';
import type { Trainer } from './clients.js';
import type { GroupOrigin, Resolved } from './grpo-options.js';
import type { GrpoState } from './grpo-state.js';
import { LoopGuard } from './loop-guard.js';
import type { Policy } from './rollout-pool.js';

export interface GrpoGuardOptions {
  readonly training: Trainer;
  readonly run: Resolved;
  /** How many problems an epoch has; undefined where they are drawn. */
  readonly problems: number | undefined;
  /** Where another process stopped; undefined at the beginning. */
  readonly from: GrpoState | undefined;
}

export interface GrpoFacts<G>
  extends Pick<StepFacts, 'step' | 'metrics' | 'validation' | 'data' | 'sources' | 'outputs' | 'update'> {
  readonly groups: readonly (G & GroupOrigin)[];
  /** The newest that the step could sample from. */
  readonly policy: Policy;
}

export class GrpoGuard extends LoopGuard {
  readonly #options: GrpoGuardOptions;
  /** Epochs before it began in a process whose guard left nothing, so this one can't know which of their problems were taken. */
  readonly #wholeEpochsFrom: number;

  constructor(options: GrpoGuardOptions) {
    const { training, run, problems = 1, from } = options;
    const { guard, onNotice, maxStepsOffPolicy, maxGraderErrorShare } = run;
    super({
      state: from?.guard,
      ...{ guard, training, onNotice },
      limits: {
        'guard/stale-sampler': { maxStepsOffPolicy },
        'guard/sampler-never-refreshed': { maxStepsOffPolicy },
        'guard/grader-failing': { stopShare: maxGraderErrorShare },
      },
    });
    this.#options = options;
    const isUnknown = from !== undefined && from.guard === undefined;
    this.#wholeEpochsFrom = isUnknown ? Math.floor((from.stream.next - 1) / problems) + 1 : 0;
  }

  lookAt<G extends SampledRollouts>({ groups, policy, ...facts }: GrpoFacts<G>): readonly Alarm[] {
    const { run, problems } = this.#options;
    const epochOf = ({ problemIndex }: GroupOrigin): number => Math.floor(problemIndex / (problems ?? 1));
    const known = groups.filter((group) => epochOf(group) >= this.#wholeEpochsFrom);
    const rows =
      problems === undefined
        ? {}
        : {
            rows: {
              keys: known.map(({ problem }) => problem.id),
              epochs: known.map(epochOf),
              of: problems,
              slack: (run.maxStepsOffPolicy + 1) * run.groupsPerStep,
              dropped: facts.metrics?.['groups/dropped'] ?? 0,
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
