/** The defaults of a task's settings, and their limits: the one place. */
import { complaint } from '@loopwright/protocol';
import type { TaskSettings } from './task.js';

export type ResolvedSettings = Required<TaskSettings>;

/** The model that is always there. */
export const defaultTaskModel = 'loopwright-tiny';

interface SettingRow {
  readonly fallback: number;
  readonly min: number;
  readonly max: number;
  readonly whole: boolean;
}

const whole = (fallback: number, min: number, max: number): SettingRow => ({ fallback, min, max, whole: true });
const real = (fallback: number, min: number, max: number): SettingRow => ({ fallback, min, max, whole: false });

/** The defaults are those of `runGrpo`, but for `steps`, which it asks for. */
const rows: { readonly [K in keyof ResolvedSettings]: SettingRow } = {
  groupSize: whole(8, 2, 1024),
  groupsPerStep: whole(8, 1, 65_536),
  steps: whole(100, 1, 1_000_000),
  maxTokens: whole(64, 1, 1_000_000),
  temperature: real(1, 0.01, 2),
  learningRate: real(1e-4, Number.MIN_VALUE, 0.01),
  rank: whole(16, 1, 1024),
  correctReward: real(1, -Number.MAX_VALUE, Number.MAX_VALUE),
  maxTurns: whole(8, 1, 1000),
};

/**
 * Settings with every default filled in.
 *
 * @param field how they are called in messages
 * @throws `invalid_argument` for an unknown name or a value out of range
 */
export function resolveSettings(settings: TaskSettings = {}, field = 'settings'): ResolvedSettings {
  const given: Readonly<Record<string, unknown>> = { ...settings };
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(rows, name)) continue;
    throw complaint({
      field: `${field}.${name.slice(0, 60)}`,
      expected: Object.keys(rows).join(', '),
      got: 'another name',
    });
  }
  const entries = Object.entries(rows).map(([name, { fallback, min, max, whole }]) => {
    const value = given[name] ?? fallback;
    const isFine = typeof value === 'number' && value >= min && value <= max && (!whole || Number.isInteger(value));
    if (isFine) return [name, value] as const;
    const span =
      max === Number.MAX_VALUE ? 'a finite number' : `${whole ? 'a whole number ' : ''}from ${min} to ${max}`;
    const got = typeof value === 'number' ? String(value) : typeof value;
    throw complaint({ field: `${field}.${name}`, expected: span, got });
  });
  return Object.fromEntries(entries) as unknown as ResolvedSettings; // true: a number for each of its names
}
