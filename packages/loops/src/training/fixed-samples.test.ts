import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { expect, it } from 'vitest';
import { withRun } from '../runs/open-run.js';
import { readSamples } from '../runs/read-run.js';
import type { RunSample } from '../runs/run-samples.js';
import { Bandit, copyEnvironment, copyProblem } from '../testing/bandit.js';
import { chooseFixed } from './fixed-samples.js';
import { runGrpo } from './grpo.js';

it('the same prompts are answered before the first step, in the middle and after the last, and kept with ids and logprobs', async () => {
  await using directory = await temporaryDirectory();
  const folder = join(directory.path, 'run');
  const options = { environment: copyEnvironment, steps: 5, maxTokens: 1, seed: 3, learningRate: 0.01 };
  await withRun({ folder, config: {}, samples: { groupsPerStep: 0 } }, (run) =>
    runGrpo({
      ...{ training: new Bandit(), ...options, onNotice: () => undefined, onStep: run.onStep },
      fixedSamples: { problems: [0, 1, 2, 3].map(copyProblem), count: 3 },
      onFixedSamples: run.onFixedSamples,
    }),
  );
  const kept: RunSample[] = [];
  for await (const sample of readSamples(folder)) kept.push(sample);
  const at = (step: number) => kept.filter((sample) => sample.step === step).map(({ problem }) => problem);
  expect(kept.map(({ type }) => type)).toEqual(kept.map(() => 'fixed'));
  expect(at(0)).toHaveLength(3);
  expect([at(3), at(5)]).toEqual([at(0), at(0)]);
  expect(kept).toHaveLength(9);
  const { prompt, tokens, logprobs } = kept[0]!.segments[0]!;
  expect([prompt.length, tokens.length, logprobs.length]).toEqual([2, 1, 1]);
  const right = (step: number) => kept.filter((sample) => sample.step === step && sample.reward === 1).length;
  expect([right(0), right(5)]).toEqual([
    kept.filter(({ step, question }) => step === 0 && question === '0=').length,
    3,
  ]);
});

it('which they are hangs on the seed alone', () => {
  const fallback = Array.from({ length: 100 }, (_, i) => i);
  const choose = (seed: number) => chooseFixed({}, { seed, fallback, draw: () => -1 });
  expect(choose(1)).toEqual(choose(1));
  expect(choose(1)).toHaveLength(20);
  expect(choose(1)).not.toEqual(choose(2));
  expect(chooseFixed({ count: 2 }, { seed: 1, fallback: undefined, draw: (random) => random.integer(9) })).toHaveLength(
    2,
  );
  expect(() => chooseFixed({ problems: [] }, { seed: 1, fallback, draw: () => 0 })).toThrow('fixedSamples.problems');
});
