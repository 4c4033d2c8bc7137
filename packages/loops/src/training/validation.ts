/** Measuring, while a run trains, on what it never trains on. */
import type { Metrics } from './grpo-metrics.js';
import { finiteNumber, wholeNumber } from './options.js';

/** When a loop measures. */
export interface ValidationSchedule {
  /** Steps between two measurements; default 10. The last step is always followed by one. */
  readonly everySteps?: number;
  /** Whether also before the first step, as step 0; default true. */
  readonly atStart?: boolean;
}

/** One greedy answer, or episode, to each of the problems. */
export interface ValidationOptions<P> extends ValidationSchedule {
  /** Problems that are never trained on. */
  readonly problems: readonly P[];
  /** New tokens of an answer at most; default those of the run. */
  readonly maxTokens?: number;
  /** Answers that are worth at least this count as correct; default 1. */
  readonly correctReward?: number;
}

/** A measurement. */
export interface ValidationStep<E = undefined> {
  readonly type: 'validation';
  /** After which it was made; 0 is before the first. */
  readonly step: number;
  readonly totalSteps: number;
  /** `validation/…`, with n and a 95 % interval, and `time/validation_ms`. */
  readonly metrics: Metrics;
  /** What was found, with the answers: content, for people, not for logs. */
  readonly evaluation: E;
}

/** The numbers of a measurement. */
export interface Validation {
  readonly step: number;
  readonly metrics: Metrics;
}

/** @throws `invalid_argument` */
export function checkValidation<P>(validation: ValidationOptions<P>): void {
  wholeNumber('validation.problems.length', validation.problems.length, 1);
  if (validation.maxTokens !== undefined) wholeNumber('validation.maxTokens', validation.maxTokens, 1);
  if (validation.correctReward !== undefined) finiteNumber('validation.correctReward', validation.correctReward);
  checkSchedule('validation', validation);
}

/** @throws `invalid_argument` */
export function checkSchedule(field: string, { everySteps }: ValidationSchedule): void {
  if (everySteps !== undefined) wholeNumber(`${field}.everySteps`, everySteps, 1);
}

export interface ValidatorOptions<E> extends ValidationSchedule {
  readonly totalSteps: number;
  readonly now: () => number;
  readonly measure: () => Promise<{ readonly metrics: Metrics; readonly evaluation: E }>;
  readonly onValidation: ((validation: ValidationStep<E>) => void | Promise<void>) | undefined;
}

/** Measures when it is due. */
export class Validator<E> {
  readonly #options: ValidatorOptions<E>;
  readonly #done: Validation[] = [];

  constructor(options: ValidatorOptions<E>) {
    this.#options = options;
  }

  get done(): readonly Validation[] {
    return this.#done;
  }

  /** As a fact for the guard; nothing before the first. */
  get newest(): { readonly validation?: Validation } {
    const validation = this.#done.at(-1);
    return validation === undefined ? {} : { validation };
  }

  /** To be asked for at the beginning, with the step that a run goes on from, and after each step: once it can be gone on from, for this takes time. */
  async after(step: number): Promise<void> {
    const { totalSteps, everySteps = 10, atStart = true, now, measure, onValidation } = this.#options;
    const isDue = step === 0 ? atStart : step === totalSteps || step % everySteps === 0;
    if (!isDue) return;
    const start = now();
    const { metrics: measured, evaluation } = await measure();
    const metrics = { ...measured, 'time/validation_ms': now() - start };
    this.#done.push({ step, metrics });
    await onValidation?.({ type: 'validation', step, totalSteps, metrics, evaluation });
  }
}
