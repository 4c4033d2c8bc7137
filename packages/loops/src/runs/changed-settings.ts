/** Settings that a resumed run has otherwise than it began with: which may be, and how the others are told. */
import { complaint } from '@loopwright/protocol';
import type { JsonValue } from '../data/row.js';
import { type ConfigChange, compareConfigs } from './compare-configs.js';
import { plainConfig } from './plain-config.js';
import type { RunRecord } from './run-record.js';

/** Settings that say how long a run is, what is kept of it and where it goes on; what was done so far is the same with any value of them. */
export const freeSettings = ['steps', 'epochs', 'maxSteps', 'checkpointEvery', 'keepCheckpoints', 'resume'] as const;

type Facts = Pick<RunRecord, 'config' | 'seeds' | 'data'>;
type Versions = Pick<RunRecord, 'versions'>;

interface ChangesOptions {
  /** Names of settings that may differ, besides {@link freeSettings}. */
  readonly mayChange: readonly string[];
  /** Others may too. */
  readonly allowAll: boolean;
}

/** A setting that is another now. */
export interface ChangedSetting {
  /** Such as `config.steps`. */
  readonly path: string;
  /** With the old value and the new, but for texts. */
  readonly told: string;
}

/**
 * In what the settings differ.
 *
 * @throws `invalid_argument` when others than those that may do
 */
export function changedSettings(before: Facts, now: Facts, { mayChange, allowAll }: ChangesOptions): ChangedSetting[] {
  const settingsOf = ({ config, seeds, data }: Facts) => plainConfig({ config, seeds, data });
  const changes = compareConfigs(settingsOf(before), settingsOf(now));
  const free = [...freeSettings, ...mayChange].map((name) => `config.${name}`);
  const refused = changes.filter(({ path }) => !free.some((name) => path === name || path.startsWith(`${name}.`)));
  if (refused.length > 0 && !allowAll) {
    const told = refused.slice(0, 10).map(toldOf);
    throw complaint({
      field: 'options.config',
      expected: 'the settings, seeds and data that the run began with',
      got: `others: ${told.join(', ')}${refused.length > 10 ? ` and ${refused.length - 10} more` : ''}`,
      remedy: `set them as they were, or allow changes (allowChanges: true, or --allow-changes of a recipe) to go on with the new ones; free to change: ${[...freeSettings, ...mayChange].join(', ')}`,
    });
  }
  return changes.map((change) => ({ path: change.path, told: toldOf(change) }));
}

/** Versions that are others now: numbers may then differ in their last bits. */
export function changedVersions(before: Versions, now: Versions): string[] {
  return compareConfigs(plainConfig(before), plainConfig(now)).map(toldOf);
}

function toldOf({ path, a, b }: ConfigChange): string {
  return `${path} (${shown(a)} then, ${shown(b)} now)`;
}

/** Settings may hold prompts: numbers and short names are told, of other texts the length. */
function shown(value: JsonValue | undefined): string {
  if (value === undefined) return 'absent';
  if (typeof value === 'string' && !/^[\w./:@+-]{1,64}$/.test(value)) return `a text of ${value.length} characters`;
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an empty list' : 'an empty object';
  return String(value);
}
