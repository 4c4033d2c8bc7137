/** Every alarm that there is: the one list. The pages of the documentation, their index and the tests go by it. */
import { allTruncated, allUnparsed } from './rules/answers.js';
import { retokenized, shiftedDatum } from './rules/datums.js';
import { klSpike, klZero, learningRate } from './rules/distance.js';
import { deadBatch, graderConstant, graderFailing } from './rules/graders.js';
import { gradientExploding, gradientNotFinite, gradientZero } from './rules/gradient.js';
import { maskEmpty, maskPrompt, toolResultsTrained } from './rules/masks.js';
import { ratio } from './rules/ratio.js';
import { heldOutFalls, lengthExploitation, rewardJump } from './rules/reward.js';
import { resumeWithoutOptimizer, rowsLost, rowsTwice } from './rules/rows.js';
import { samplerNeverRefreshed, samplingPolicy, staleSampler } from './rules/sampler.js';
import { duplicateRollouts, nearIdenticalSamples, stdCollapse } from './rules/variety.js';

export const alarmRules = [
  ...[ratio, samplingPolicy, staleSampler, samplerNeverRefreshed],
  ...[allTruncated, allUnparsed, graderFailing, graderConstant, deadBatch],
  ...[stdCollapse, duplicateRollouts, nearIdenticalSamples],
  ...[gradientZero, gradientExploding, gradientNotFinite],
  ...[maskEmpty, maskPrompt, toolResultsTrained, shiftedDatum, retokenized],
  ...[rewardJump, lengthExploitation, heldOutFalls],
  ...[klSpike, klZero, learningRate],
  ...[rowsLost, rowsTwice, resumeWithoutOptimizer],
] as const;

type Rules = (typeof alarmRules)[number];

export type AlarmName = Rules['name'];

/** Numbers to go by instead of those that a rule has. */
export type AlarmLimits = {
  readonly [R in Rules as R['name']]?: { readonly [L in keyof R['limits']]?: number };
};
