/** The guard of a GRPO run: what the loop knows of a step, as the guard wants it. */
import { LoopwrightError } from '@loopwright/protocol';
import { type Alarm, alarmText } from '../guard/alarm.js';
import type { StepFacts } from '../guard/facts.js';
import { createGuard, type Guard } from '../guard/guard.js';
import { groupFacts } from '../guard/loop-facts.js';
import type { AlarmLimits } from '../guard/registry.js';
import type { SampledRollouts } from '../runs/run-samples.js';
import type { GroupOrigin, Resolved } from './grpo-options.js';
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

export class GrpoGuard {
  readonly #options: GrpoGuardOptions;
  readonly #guard: Guard | undefined;
  #dropped = 0;

  constructor(options: GrpoGuardOptions) {
    this.#options = options;
    const { guard, onNotice, maxStepsOffPolicy, maxGraderErrorShare } = options.run;
    if (guard === false) return;
    const { onAlarm = (alarm: Alarm) => onNotice({ type: 'alarm', message: alarmText(alarm) }) } = guard;
    const limits: AlarmLimits = {
      ...guard.limits,
      'guard/stale-sampler': { maxStepsOffPolicy, ...guard.limits?.['guard/stale-sampler'] },
      'guard/sampler-never-refreshed': { maxStepsOffPolicy, ...guard.limits?.['guard/sampler-never-refreshed'] },
      'guard/grader-failing': { stopShare: maxGraderErrorShare, ...guard.limits?.['guard/grader-failing'] },
    };
    this.#guard = createGuard({ ...guard, onAlarm, limits });
  }

  look<G extends SampledRollouts>({ groups, policy, ...facts }: GrpoFacts<G>): readonly Alarm[] {
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
    return (
      this.#guard?.look({
        ...facts,
        ...rows,
        groups: groups.map(groupFacts),
        sampling: { temperature: run.temperature },
        sampler: policy.sampler,
        learningRate: run.learningRate,
      }) ?? []
    );
  }

  /** @throws `guard_stopped` when one of them ends the run */
  async act(alarms: readonly Alarm[]): Promise<void> {
    await this.#guard?.act(alarms);
  }

  /** The result of a part of a step; when that fails, the guard is told before the loop ends. */
  async watch<T>(step: number, work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      const alarms = this.#guard?.look({ step, failure: error }) ?? [];
      // A run that ends for its grader says so by a code of its own.
      const hasCode = LoopwrightError.isInstance(error) && error.code === 'grader_failed';
      await this.#guard?.act(alarms, { cause: error }).catch((stop: unknown) => {
        if (!hasCode) throw stop;
      });
      throw error;
    }
  }
}
