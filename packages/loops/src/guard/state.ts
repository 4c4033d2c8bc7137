/** What the guard remembers, as plain JSON: so that a run that goes on is looked at as if it had never stopped. */
import * as z from 'zod/mini';
import { findingLevels } from '../findings.js';
import { emptyHistory, type History } from './history.js';
import type { PastRows } from './past-rows.js';

/** Rows of begun epochs whose keys are kept; of larger epochs it isn't known after a resume what was taken. About 1.2 MB in each checkpoint. */
export const savedRows = 100_000;

const count = z.int().check(z.minimum(0));
const metrics = z.record(z.string(), z.number());
const pastStep = z.object({
  step: count,
  metrics,
  datums: count,
  isDead: z.exactOptional(z.boolean()),
  lengthReward: z.exactOptional(z.number()),
  similarity: z.exactOptional(z.number()),
});

export const guardState = z.object({
  /** Alarms by their names. */
  ongoing: z.record(
    z.string(),
    z.object({ lastSeen: count, lastRaised: count, level: z.enum(findingLevels), times: count }),
  ),
  steps: z.array(pastStep),
  first: z.array(pastStep),
  validations: z.array(z.object({ step: count, metrics })),
  updates: count,
  rewards: z.exactOptional(z.object({ low: z.number(), high: z.number() })),
  rows: z.object({
    /** By epoch: hashes of the keys that were taken, in base 36, with spaces between. */
    epochs: z.record(z.string().check(z.regex(/^\d+$/)), z.string().check(z.regex(/^[\da-z -]*$/))),
    closed: z.int(),
    counted: count,
    repeated: count,
    dropped: count,
    unread: count,
  }),
  /** Hash of prompt and answers → the step. */
  groups: z.record(z.string(), count),
});

/** Plain JSON, without content. */
export type GuardState = z.infer<typeof guardState>;

export type HistoryState = Omit<GuardState, 'ongoing'>;

/** Samplers stay out: they are objects of their process, and the next makes its own. */
export function historyState({ samplers: _, rewards, rows, groups, ...rest }: History): HistoryState {
  return {
    ...{ ...rest, steps: [...rest.steps], first: [...rest.first], validations: [...rest.validations] },
    ...(rewards === undefined ? {} : { rewards }),
    rows: rowsState(rows),
    groups: Object.fromEntries(groups.hashes),
  };
}

export function historyFrom({ rewards, rows, groups, ...rest }: HistoryState): History {
  const epochs = Object.entries(rows.epochs).map(([epoch, keys]) => [Number(epoch), new Set(numbersOf(keys))] as const);
  return {
    ...emptyHistory(),
    ...rest,
    rewards,
    rows: { ...rows, epochs: new Map(epochs) },
    groups: { hashes: new Map(Object.entries(groups)) },
  };
}

function rowsState({ epochs, closed, ...counts }: PastRows): HistoryState['rows'] {
  const all = [...epochs].reduce((sum, [, keys]) => sum + keys.size, 0);
  if (all > savedRows) return { ...counts, epochs: {}, closed: Math.max(closed, ...epochs.keys()) };
  const texts = [...epochs].map(([epoch, keys]) => [String(epoch), textOf(keys)] as const);
  return { ...counts, epochs: Object.fromEntries(texts), closed };
}

function textOf(keys: ReadonlySet<number>): string {
  return Array.from(keys, (key) => key.toString(36)).join(' ');
}

function numbersOf(text: string): number[] {
  return text === '' ? [] : text.split(' ').map((key) => Number.parseInt(key, 36));
}
