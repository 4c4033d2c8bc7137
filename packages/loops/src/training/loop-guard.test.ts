import { expect, it } from 'vitest';
import { sftDatum } from '../datums/sft-datum.js';
import type { Alarm } from '../guard/alarm.js';
import type { GuardOptions } from '../guard/guard.js';
import { Bandit, characterTokenizer, copyEnvironment, copyProblem } from '../testing/bandit.js';
import { runGrpo } from './grpo.js';
import { runSft } from './sft.js';

const tokenizer = characterTokenizer();
const { question, answer } = copyProblem(1);
const data = [sftDatum({ prompt: tokenizer.encode(question), completion: tokenizer.encode(answer) })];
const learningRate = 1e-3; // usual for an adapter, high for every weight

type Loop = (training: Bandit, guard: GuardOptions) => Promise<unknown>;
const grpo: Loop = (training, guard) =>
  runGrpo({
    ...{ training, guard, learningRate, environment: copyEnvironment },
    ...{ steps: 1, groupsPerStep: 4, samplesPerGroup: 16, maxTokens: 1 },
  });
const sft: Loop = (training, guard) => runSft({ training, guard, learningRate, data });

it.each([
  ['grpo', grpo],
  ['sft', sft],
])('%s judges the learning rate by what the training client says it trains', async (_name, loop) => {
  const raised = async (training: Bandit, options: GuardOptions = {}): Promise<readonly string[]> => {
    const seen: Alarm[] = [];
    await loop(training, { ...options, onAlarm: (alarm) => void seen.push(alarm) });
    return seen.flatMap(({ name, seen: what }) => (name === 'guard/learning-rate' ? [what] : []));
  };
  const of = (trainingType: 'lora' | 'full') => Object.assign(new Bandit(), { trainingType });
  expect(await raised(of('full'))).toEqual([expect.stringContaining('0.001 for all weights')]);
  expect(await raised(of('lora'))).toEqual([]);
  expect(await raised(new Bandit())).toEqual([]);
  expect(await raised(of('full'), { training: 'lora' })).toEqual([]);
});
