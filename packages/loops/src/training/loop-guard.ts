/** The guard of a loop: it may be off, it speaks by the loop's notices, and it is told of what ends a step before its end. */
import { LoopwrightError } from '@loopwright/protocol';
import { type Alarm, alarmText } from '../guard/alarm.js';
import type { StepFacts } from '../guard/facts.js';
import { createGuard, type Guard, type GuardOptions } from '../guard/guard.js';
import type { AlarmLimits } from '../guard/registry.js';
import type { GuardState } from '../guard/state.js';
import type { Trainer } from './clients.js';
import type { LoopNotice } from './grpo-options.js';

export interface LoopGuardOptions {
  readonly guard: GuardOptions | false;
  readonly training: Pick<Trainer, 'trainingType'>;
  readonly onNotice: (notice: LoopNotice) => void;
  /** What follows from other options of the loop; the guard's own come before it. */
  readonly limits?: AlarmLimits;
  /** Of the process that the run goes on from. */
  readonly state: GuardState | undefined;
}

export class LoopGuard {
  readonly #guard: Guard | undefined;

  constructor({ guard, training, onNotice, limits = {}, state }: LoopGuardOptions) {
    if (guard === false) return;
    const { onAlarm = (alarm: Alarm) => onNotice({ type: 'alarm', message: alarmText(alarm) }) } = guard;
    const { trainingType } = training;
    const told = trainingType === undefined ? {} : { training: trainingType };
    const own: Readonly<Record<string, object | undefined>> = { ...guard.limits };
    const merged = Object.entries(limits).map(([name, values]) => [name, { ...values, ...own[name] }]);
    this.#guard = createGuard({
      ...{ ...told, ...guard, onAlarm },
      limits: { ...guard.limits, ...Object.fromEntries(merged) },
    });
    if (state !== undefined) this.#guard.restore(state);
  }

  /** For a checkpoint: nothing where the guard is off. */
  get state(): { readonly guard?: GuardState } {
    return this.#guard === undefined ? {} : { guard: this.#guard.state };
  }

  look(facts: StepFacts): readonly Alarm[] {
    return this.#guard?.look(facts) ?? [];
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
      const alarms = this.look({ step, failure: error });
      await this.#guard?.act(alarms, { cause: error }).catch((stop: unknown) => {
        // A run that ends for its grader says so by a code of its own, beside the alarm.
        if (!LoopwrightError.isInstance(error) || error.code !== 'grader_failed') throw stop;
        const { code, message, details, cause } = error;
        const alarm = LoopwrightError.isInstance(stop) ? stop.details : {};
        throw new LoopwrightError({ code, message, details: { ...details, ...alarm }, cause });
      });
      throw error;
    }
  }
}
