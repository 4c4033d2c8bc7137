/** How sampling computes: in float32, or by weights that are rounded to int8, faster and with other probabilities. */
import { complaint } from '@loopwright/protocol';

export const samplerPrecisions = ['float32', 'int8'] as const;
export type SamplerPrecision = (typeof samplerPrecisions)[number];

/** @throws `invalid_argument` for what is no precision's name */
export function requirePrecisionName(name: string): SamplerPrecision {
  const found = samplerPrecisions.find((precision) => precision === name);
  if (found !== undefined) return found;
  throw complaint({
    field: 'samplerPrecision',
    expected: samplerPrecisions.join(' or '),
    got: JSON.stringify(name.slice(0, 40)),
    remedy: 'leave it out for float32',
  });
}

/** How sampled logprobs differ from those that float32 gives of the same tokens, in nats; measured on a short text as an engine is loaded. */
export interface PrecisionEffect {
  readonly meanDifference: number;
  readonly largestDifference: number;
  /** Share of positions at which both find the same token likeliest. */
  readonly sameLikeliest: number;
  /** That were compared. */
  readonly tokens: number;
}
