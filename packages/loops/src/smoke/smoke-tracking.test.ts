import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { SampledRollouts } from '../runs/run-samples.js';
import { characterTokenizer, copyProblem } from '../testing/bandit.js';
import type { StepOf } from '../training/grpo-options.js';
import { smokeTracking } from './smoke-tracking.js';

let directory: TemporaryDirectory;

beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(() => directory[Symbol.asyncDispose]());

const track = (weight: number) => {
  const problem = copyProblem(1);
  const components = [{ name: 'right', weight, status: 'ok' as const, score: 1 }];
  const rollout: SampledRollouts['rollouts'][number] = {
    ...{ text: '1', reward: 1, grade: { status: 'ok', reward: 1, components } },
    sequence: { tokens: [1], logprobs: [-1], stopReason: 'stop' },
  };
  const step = { type: 'step-end', step: 1, metrics: {}, groups: [{ problem, prompt: [1], rollouts: [rollout] }] };
  return smokeTracking({
    ...{ folder: directory.path, config: {}, seed: 1, problems: [problem], heldOut: undefined },
    tokenizer: characterTokenizer(),
    steps: [step as unknown as StepOf<SampledRollouts>], // true of what is written: the rest of a step isn't looked at
  });
};

it('reads back what was written, and tells samples that it can not', async () => {
  expect(await track(1)).toBe('1 step and 1 sample written to a run folder and read back');
  const text = '1' as unknown as number; // what a type does not allow
  await expect(track(text)).rejects.toThrow('0 of 1 samples could be read back');
});
