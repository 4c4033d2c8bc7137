/** Every alarm that there is: the one list. The pages of the documentation, their index and the tests go by it. */
import { allTruncated, allUnparsed } from './rules/answers.js';
import { deadBatch, graderConstant, graderFailing } from './rules/graders.js';
import { gradientExploding, gradientNotFinite, gradientZero } from './rules/gradient.js';
import { ratio } from './rules/ratio.js';
import { samplerNeverRefreshed, samplingPolicy, staleSampler } from './rules/sampler.js';

export const alarmRules = [
  ...[ratio, samplingPolicy, staleSampler, samplerNeverRefreshed],
  ...[allTruncated, allUnparsed, graderFailing, graderConstant, deadBatch],
  ...[gradientZero, gradientExploding, gradientNotFinite],
] as const;

type Rules = (typeof alarmRules)[number];

export type AlarmName = Rules['name'];

/** Numbers to go by instead of those that a rule has. */
export type AlarmLimits = {
  readonly [R in Rules as R['name']]?: { readonly [L in keyof R['limits']]?: number };
};
