/** Losses of this wire: names, configuration and what it fills in. */
import { complaint, type LossInputName, type LossName, type LossSpec, losses } from '@loopwright/protocol';
import { describeValue, type JsonObject, numberAt, refuseOtherKeys, showKey } from '../checks.js';
import { lossDefaults } from './defaults.js';

/** The losses that this wire offers. */
export const offeredLosses = ['cross_entropy', 'importance_sampling', 'ppo', 'cispo', 'dro'] as const;

/** Inputs of a datum: numbers for each token of its model input. */
export const lossInputKeys = {
  targetTokens: 'target_tokens',
  weights: 'weights',
  advantages: 'advantages',
  logprobs: 'logprobs',
} as const satisfies Partial<Record<LossInputName, string>>;

/** Thresholds are bounds on the ratio: the lower one from 0, the upper one as high as a caller likes. */
const ranges = {
  clip_low_threshold: { min: 0, max: 1e6 },
  clip_high_threshold: { min: 0, max: 1e6 },
  beta: losses.dro.config.beta,
} as const;

/** @throws `invalid_argument` for a loss or a key that is not offered, or out of range */
export function completeLoss(value: unknown, config: JsonObject, field: string): LossSpec {
  const name: LossName | undefined = offeredLosses.find((known) => known === value);
  const at = `${field}.loss_fn_config`;
  const read = (key: keyof typeof ranges, fallback: number) =>
    numberAt(config[key] ?? fallback, `${at}.${key}`, ranges[key]);
  switch (name) {
    case 'cross_entropy':
    case 'importance_sampling':
      refuseOtherKeys(config, [], at);
      return { name };
    case 'ppo':
    case 'cispo': {
      refuseOtherKeys(config, ['clip_low_threshold', 'clip_high_threshold'], at);
      const { clipLowThreshold, clipHighThreshold } = lossDefaults[name];
      return {
        name,
        clipLowThreshold: read('clip_low_threshold', clipLowThreshold),
        clipHighThreshold: read('clip_high_threshold', clipHighThreshold),
      };
    }
    case 'dro':
      refuseOtherKeys(config, ['beta'], at);
      return { name, beta: read('beta', lossDefaults.dro.beta) };
    default:
      throw complaint({
        field: `${field}.loss_fn`,
        expected: `one of ${offeredLosses.join(', ')}`,
        got: typeof value === 'string' ? showKey(value) : describeValue(value),
        remedy: 'take one of these; loops that default to stable_reinforce take loss_fn=importance_sampling',
      });
  }
}
