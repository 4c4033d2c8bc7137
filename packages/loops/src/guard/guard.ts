/** Looks at each step of a run and raises alarms. */
import { complaint, LoopwrightError, type TrainingSpec } from '@loopwright/protocol';
import type { FindingLevel } from '../findings.js';
import { type Alarm, alarmText, levelRank } from './alarm.js';
import type { StepFacts } from './facts.js';
import { emptyHistory, type History, remember, withValidation } from './history.js';
import { type Observation, observationOf } from './observation.js';
import { type AlarmLimits, type AlarmName, alarmRules } from './registry.js';
import { type AlarmRule, type Look, pageOf, type Sighting } from './rule.js';
import { type GuardState, guardState, historyFrom, historyState } from './state.js';

/** What becomes of a run after an alarm. */
export type AlarmDecision = 'continue' | 'stop';

export interface GuardOptions {
  /**
   * Told of each alarm, and awaited; what it says is done. Where it says nothing: `stop` for the level stop, `continue` for others. Default: `console.warn`
   * with the alarm in a line, and no more.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is the usual one
  readonly onAlarm?: (alarm: Alarm) => AlarmDecision | void | Promise<AlarmDecision | void>;
  /** Alarms that are not to be raised. */
  readonly off?: readonly AlarmName[];
  /** Other numbers than the rules have. */
  readonly limits?: AlarmLimits;
  /** What is trained. Default: in a loop what its training client says, else `lora`. */
  readonly training?: TrainingSpec['type'];
}

/** An alarm that goes on is raised again after so many steps. */
const repeatAfter = 10;

interface Ongoing {
  readonly lastSeen: number;
  readonly lastRaised: number;
  readonly level: FindingLevel;
  readonly times: number;
}

/**
 * A guard of one run. The loops have one; a loop of your own makes one and calls `observe` once a step.
 *
 * @throws `invalid_argument` for an alarm or a limit that there is not
 * @example
 * const guard = createGuard();
 * await guard.observe({ step, sampler, groups, data, outputs: pass.outputs, update });
 */
export function createGuard(options: GuardOptions = {}): Guard {
  return new Guard(options);
}

/** Get one from {@link createGuard}. */
export class Guard {
  readonly #options: GuardOptions;
  readonly #rules: readonly { readonly rule: AlarmRule; readonly limits: Readonly<Record<string, number>> }[];
  readonly #ongoing = new Map<string, Ongoing>();
  readonly #alarms: Alarm[] = [];
  #history: History = emptyHistory();

  /** @internal use `createGuard` */
  constructor(options: GuardOptions) {
    checkOptions(options);
    const { off = [], limits = {} } = options;
    this.#options = options;
    this.#rules = alarmRules
      .filter(({ name }) => !off.includes(name))
      .map((rule: AlarmRule) => {
        const own = Object.entries(rule.limits).map(([key, { value }]) => [key, value] as const);
        return { rule, limits: { ...Object.fromEntries(own), ...limits[rule.name as AlarmName] } };
      });
  }

  /** All that were raised, in their order. */
  get alarms(): readonly Alarm[] {
    return this.#alarms;
  }

  /** What it remembers between two steps, to be saved with a checkpoint. Not in it: samplers, which are of their process, and {@link alarms}. */
  get state(): GuardState {
    return { ongoing: Object.fromEntries(this.#ongoing), ...historyState(this.#history) };
  }

  /**
   * Goes on, before its first step, from what another guard remembered.
   *
   * @throws `data_invalid` for what is no such state
   */
  restore(state: GuardState): void {
    const { data, error } = guardState.safeParse(state);
    if (data === undefined) throw unreadable(error);
    const { ongoing, ...history } = data;
    for (const [name, each] of Object.entries(ongoing)) this.#ongoing.set(name, each);
    this.#history = historyFrom(history);
  }

  /**
   * Looks at a step once it is over: after the optimizer step and before the next sampling.
   *
   * @returns the alarms of this step
   * @throws `guard_stopped` when an alarm ends the run: nothing is pending then, and the weights are those after this step; what `onAlarm` throws
   */
  async observe(facts: StepFacts): Promise<readonly Alarm[]> {
    const raised = this.look(facts);
    await this.act(raised);
    return raised;
  }

  /** As {@link observe}, without acting on what it sees. */
  look(facts: StepFacts): readonly Alarm[] {
    if (!Number.isInteger(facts.step) || facts.step < 0)
      throw complaint({ field: 'facts.step', expected: 'a whole number from 0', got: String(facts.step) });
    const now = observationOf(facts);
    this.#history = withValidation(this.#history, now);
    const sightings = this.#sightings(now);
    this.#history = remember(this.#history, now);
    const raised = sightings.flatMap(({ rule, sighting }) => this.#raise(rule, sighting, now.step) ?? []);
    this.#alarms.push(...raised);
    return raised;
  }

  /** Tells of alarms. @throws `guard_stopped` for the first that ends the run, after all were told */
  async act(alarms: readonly Alarm[], { cause }: { readonly cause?: unknown } = {}): Promise<void> {
    let ending: Alarm | undefined;
    for (const alarm of alarms) {
      const { onAlarm = (each: Alarm) => console.warn(alarmText(each)) } = this.#options;
      const decision = await onAlarm(alarm);
      if ((decision ?? (alarm.level === 'stop' ? 'stop' : 'continue')) === 'stop') ending ??= alarm;
    }
    if (ending !== undefined) throw stopped(ending, cause);
  }

  #sightings(now: Observation) {
    const seen = this.#rules.flatMap(({ rule, limits }) => {
      const look: Look = { now, past: this.#history, limits, training: this.#options.training ?? 'lora' };
      const sighting = rule.look(look);
      return sighting === undefined ? [] : [{ rule, sighting }];
    });
    // What explains an alarm goes on explaining it for a while: windows still hold its steps.
    return seen.filter(({ rule: { name }, sighting }) => {
      const explaining = this.#rules.filter(({ rule }) => rule.explains?.includes(name));
      return !explaining.some(({ rule }) => {
        const ongoing = this.#ongoing.get(rule.name);
        const isRecent = ongoing !== undefined && now.step - ongoing.lastSeen <= repeatAfter;
        const own = seen.find((each) => each.rule === rule)?.sighting.level;
        const levels = [...(isRecent ? [ongoing.level] : []), ...(own === undefined ? [] : [own])];
        return levels.some((level) => levelRank(level) >= levelRank(sighting.level));
      });
    });
  }

  #raise(rule: AlarmRule, { level, seen, where }: Sighting, step: number): Alarm | undefined {
    const before = this.#ongoing.get(rule.name);
    const isGraver = before !== undefined && levelRank(level) > levelRank(before.level);
    const isNew =
      before === undefined ||
      isGraver ||
      level === 'stop' ||
      (level !== 'note' && (step - before.lastSeen > repeatAfter || step - before.lastRaised >= repeatAfter));
    const times = (before?.times ?? 0) + 1;
    this.#ongoing.set(rule.name, {
      lastSeen: step,
      lastRaised: isNew ? step : before.lastRaised,
      level: before !== undefined && !isGraver ? before.level : level,
      times,
    });
    if (!isNew) return undefined;
    const { name, remedy } = rule;
    return { name, level, step, seen, ...(where === undefined ? {} : { where }), remedy, times, page: pageOf(name) };
  }
}

function stopped(alarm: Alarm, cause: unknown): LoopwrightError {
  const { name, step, ...rest } = alarm;
  return new LoopwrightError({
    code: 'guard_stopped',
    message: `${alarmText(alarm)}. The run has ended: no gradient is pending, and the weights are those after step ${step}`,
    details: { alarm: name, step, ...rest },
    cause,
  });
}

function unreadable(error: { readonly issues: readonly { readonly path: readonly PropertyKey[] }[] }): Error {
  return complaint({
    code: 'data_invalid',
    field: ['state', ...(error.issues[0]?.path ?? [])].join('.'),
    expected: 'what `state` of a guard gave',
    got: 'something else',
    remedy: 'go on with the version of loopwright that saved it, or without it',
  });
}

function checkOptions({ off = [], limits = {} }: GuardOptions): void {
  const names: readonly string[] = alarmRules.map(({ name }) => name);
  for (const [field, given] of [
    ['off', off],
    ['limits', Object.keys(limits)],
  ] as const) {
    const unknown = given.find((name) => !names.includes(name));
    if (unknown !== undefined)
      throw complaint({ field: `guard.${field}`, expected: `one of ${names.join(', ')}`, got: unknown });
  }
  for (const rule of alarmRules) {
    for (const [key, value] of Object.entries(limits[rule.name] ?? {})) {
      const isKnown = Object.hasOwn(rule.limits, key);
      if (isKnown && typeof value === 'number' && !Number.isNaN(value)) continue;
      throw complaint({
        field: `guard.limits['${rule.name}'].${key}`,
        expected: isKnown ? 'a number' : `one of ${Object.keys(rule.limits).join(', ') || 'none, it has no limits'}`,
        got: isKnown ? String(value) : key,
      });
    }
  }
}
