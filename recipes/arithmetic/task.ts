/** The task: sums and differences below 100, answered by the bare number. Problems come in three sets that no problem shares. */
import { type ArithmeticProblem, arithmetic, defineTask, type LabelledCompletion } from 'loopwright';
import { config } from './config.js';

export const environment = arithmetic();

const { groupsPerStep, groupSize, maxTokens, steps, learningRate, rank } = config;
export const train = environment.problems({ split: 'rl', count: 3000, seed: 1 });
export const heldOut = environment.problems({ split: 'held-out', count: config.heldOut, seed: 1 });

export const task = defineTask({
  name: 'arithmetic',
  environment,
  ...{ train, heldOut },
  cases: labelled(heldOut.filter(({ answer }) => answer.length === 2).slice(0, 4)),
  settings: { groupsPerStep, groupSize, maxTokens, steps, learningRate, rank },
});

/** What people say of answers, in the ways in which models write them. */
function labelled(problems: readonly ArithmeticProblem[]): LabelledCompletion<ArithmeticProblem>[] {
  return problems.flatMap((problem) => {
    const { question, answer } = problem;
    const good = { bare: answer, 'blanks around it': ` ${answer} `, 'further lines': `${answer}\n1+1=2` };
    const bad = {
      'one more': String(Number(answer) + 1),
      'carry forgotten': String(Math.abs(Number(answer) - 10)),
      'in words': `The answer is ${answer}.`,
      'question repeated': `${question}${answer}`,
      'left to the reader': '?',
    };
    return [
      ...Object.entries(good).map(([kind, completion]) => ({ problem, label: 'good' as const, completion, kind })),
      ...Object.entries(bad).map(([kind, completion]) => ({ problem, label: 'bad' as const, completion, kind })),
    ];
  });
}
