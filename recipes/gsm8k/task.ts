/** How an answer is judged: by its number, behind `####` as the data set writes it. */
import {
  createGrader,
  defineTask,
  type Environment,
  type LabelledCompletion,
  numericAnswer,
  type Problem,
} from 'loopwright';
import { configs } from './config.js';
import { problemSets, problemsOf } from './data.js';

/** What is asked of the model, in training and in judging. */
export const instruction = 'Work it out step by step. End with a line of #### and the number.';

export const grade = createGrader<Problem>({ components: [numericAnswer()] });

/** How problems are put to the model and judged; `train` are those that may be drawn. */
export function environmentOf(train: readonly Problem[]): Environment<Problem> {
  return {
    name: 'gsm8k',
    draw: (random) => train[random.integer(train.length)]!, // in range
    prompt: ({ question }, tokenizer) =>
      tokenizer.applyChatTemplate([{ role: 'user', content: `${question}\n${instruction}` }], {
        addGenerationPrompt: true,
      }),
    grade,
  };
}

/** The task on given problems. */
export function taskOf(train: readonly Problem[], heldOut: readonly Problem[]) {
  return defineTask({
    name: 'gsm8k',
    environment: environmentOf(train),
    ...{ train, heldOut },
    model: 'HuggingFaceTB/SmolLM2-135M-Instruct',
    // `0,1` for 1 is read as two numbers, of which the last counts: the comma is tested with longer ones.
    cases: labelled(heldOut.filter(({ answer }) => /#### \d{2,}$/.test(answer)).slice(0, 4)),
    settings: { maxTokens: configs.small.maxTokens, groupSize: configs.small.rl.groupSize, rank: configs.small.rank },
  });
}

/** `loopwright preflight recipes/gsm8k` takes this one: with the folder of the data in GSM8K, on that data. */
const sets = await problemSets(process.env.GSM8K);
export const task = taskOf(
  await problemsOf(sets.train, { count: 200, seed: 0 }),
  await problemsOf(sets.test, { count: 40, seed: 0 }),
);

function labelled(problems: readonly Problem[]): LabelledCompletion<Problem>[] {
  return problems.flatMap((problem) => {
    const number = problem.answer.split('####').at(-1)!.trim(); // it has one part at least
    const value = Number(number.replaceAll(',', ''));
    const good = {
      worked: problem.answer,
      'number alone': `#### ${number}`,
      boxed: `So it is \\boxed{${number}}.`,
      'with an amount': `The answer is $${number}.`,
    };
    const bad = {
      'one more': `#### ${value + 1}`,
      'ten times': `#### ${value * 10}`,
      'in passing': `${number} comes up first.\n#### ${value + 2}`,
      'no number': 'I can not tell.',
    };
    return [
      ...Object.entries(good).map(([kind, completion]) => ({ problem, label: 'good' as const, completion, kind })),
      ...Object.entries(bad).map(([kind, completion]) => ({ problem, label: 'bad' as const, completion, kind })),
    ];
  });
}
