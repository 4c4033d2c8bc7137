/** Loss names, inputs and configuration: how this wire spells them, and what it fills in. */
import { complaint, type LossInputName, type LossName, type LossSpec, losses, lossNames } from '@loopwright/protocol';
import { describeValue, type JsonObject, numberAt, refuseOtherKeys, showKey } from '../checks.js';
import { lossDefaults } from './defaults.js';

/** Wire names of the loss inputs. */
export const lossInputKeys = {
  targetTokens: 'target_tokens',
  weights: 'weights',
  advantages: 'advantages',
  logprobs: 'logprobs',
  refLogProb: 'ref_log_prob',
  temperature: 'temperature',
} as const satisfies Record<LossInputName, string>;

/** Wire names of the configuration keys. */
export const lossConfigKeys = {
  clipLowThreshold: 'clip_low_threshold',
  clipHighThreshold: 'clip_high_threshold',
  beta: 'beta',
} as const;
type ConfigKey = keyof typeof lossConfigKeys;

/** How a caller spells names: `wire` as in JSON, `local` as in TypeScript. */
export type Spelling = 'wire' | 'local';

export function spellInput(name: LossInputName, spelling: Spelling): string {
  return spelling === 'wire' ? lossInputKeys[name] : name;
}

export function lossNameAt(value: unknown, field: string): LossName {
  const name = lossNames.find((known) => known === value);
  if (name === undefined) {
    const got = typeof value === 'string' ? `\`${showKey(value)}\`` : describeValue(value);
    throw complaint({ field, expected: `one of ${lossNames.join(', ')}`, got });
  }
  return name;
}

const clipRanges = losses.ppo.config;

/**
 * The complete loss from what a caller set.
 * The clip keys are taken with every loss of the published API (in range, without effect where nothing is clipped); `beta` belongs to `dro`.
 *
 * @throws `invalid_argument` naming the key that is unknown or out of range
 */
export function completeLoss(name: LossName, config: JsonObject, field: string, spelling: Spelling): LossSpec {
  const spell = (key: ConfigKey) => (spelling === 'wire' ? lossConfigKeys[key] : key);
  const allowed: readonly ConfigKey[] = name === 'dro' ? ['beta'] : ['clipLowThreshold', 'clipHighThreshold'];
  refuseOtherKeys(config, allowed.map(spell), field);
  const read = (key: ConfigKey, range: { readonly min: number; readonly max: number }) => {
    const value = config[spell(key)];
    return value === undefined || value === null ? undefined : numberAt(value, `${field}.${spell(key)}`, range);
  };
  if (name === 'dro') return { name, beta: read('beta', losses.dro.config.beta) ?? lossDefaults.dro.beta };
  const low = read('clipLowThreshold', clipRanges.clipLowThreshold);
  const high = read('clipHighThreshold', clipRanges.clipHighThreshold);
  if (name === 'cross_entropy' || name === 'importance_sampling') return { name };
  const defaults = lossDefaults[name];
  return {
    name,
    clipLowThreshold: low ?? defaults.clipLowThreshold,
    clipHighThreshold: high ?? defaults.clipHighThreshold,
  };
}

/** The configuration that says the whole of `loss` on the wire. */
export function encodeLossConfig(loss: LossSpec): Readonly<Record<string, number>> | undefined {
  switch (loss.name) {
    case 'ppo':
    case 'cispo':
      return { clip_low_threshold: loss.clipLowThreshold, clip_high_threshold: loss.clipHighThreshold };
    case 'dro':
      return { beta: loss.beta };
    case 'cross_entropy':
    case 'importance_sampling':
      return undefined;
    default:
      loss satisfies never;
      return undefined;
  }
}
