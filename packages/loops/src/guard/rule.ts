/** What an alarm is: one small function over a step and its history, with its limits and their reasons beside it. */
import type { TrainingSpec } from '@loopwright/protocol';
import type { FindingLevel } from '../findings.js';
import type { History } from './history.js';
import type { Observation } from './observation.js';

/** A number that a rule goes by. */
export interface Limit {
  readonly value: number;
  /** Unit and reason. */
  readonly why: string;
}

type Limits = Readonly<Record<string, Limit>>;

/** What a rule saw. */
export interface Sighting {
  readonly level: FindingLevel;
  /** With its numbers; no content. */
  readonly seen: string;
  readonly where?: string;
}

export interface Look<L extends string = string> {
  readonly now: Observation;
  readonly past: History;
  readonly limits: Readonly<Record<L, number>>;
  /** What is trained. */
  readonly training: TrainingSpec['type'];
}

export interface AlarmRule<N extends string = string, L extends Limits = Limits> {
  readonly name: `guard/${N}`;
  /** Those that it is raised at. */
  readonly levels: readonly FindingLevel[];
  /** What it says, in a sentence without its end. */
  readonly what: string;
  readonly remedy: string;
  /** Facts without which it is never raised, by their field in `StepFacts`. */
  readonly needs: string;
  readonly limits: L;
  /** Alarms that are only its consequence: they are not raised beside it. */
  readonly explains?: readonly `guard/${string}`[];
  look(look: Look<Extract<keyof L, string>>): Sighting | undefined;
}

/** Keeps the names of a rule and of its limits in its type. */
export function alarmRule<const N extends string, const L extends Limits>(rule: AlarmRule<N, L>): AlarmRule<N, L> {
  return rule;
}

/** Where an alarm is explained. */
export function pageOf(name: `guard/${string}`): string {
  return `docs/guides/${name}.md`;
}
