/** How answers are judged: a yes or no alone, and the right one. */
import { defineTask, type Environment, type LabelledCompletion } from 'loopwright';
import { config } from './config.js';
import { type YesNoQuestion, yesNoQuestions } from './questions.js';

const questions = yesNoQuestions(config.train + config.heldOut, 1);
export const train = questions.slice(0, config.train);
export const heldOut = questions.slice(config.train);

export const environment: Environment<YesNoQuestion> = {
  name: 'yes-or-no',
  draw: (random) => train[random.integer(train.length)]!, // in range
  prompt: ({ question }, tokenizer) =>
    tokenizer.applyChatTemplate([{ role: 'user', content: question }], { addGenerationPrompt: true }),
  grade({ problem, text }) {
    const [, word] = /^(yes|no)[.!]?$/i.exec(text.trim()) ?? [];
    if (word === undefined) return { status: 'unparsed', reward: 0, reason: 'more, or less, than a yes or no' };
    return { status: 'ok', reward: `${word.toLowerCase()}.` === problem.answer.toLowerCase() ? 1 : 0 };
  },
};

export const task = defineTask({
  name: 'preference-kto',
  environment,
  ...{ train, heldOut },
  model: 'HuggingFaceTB/SmolLM2-135M-Instruct',
  cases: labelled(heldOut.slice(0, 4)),
  settings: { maxTokens: config.maxTokens, learningRate: config.learningRate, rank: config.rank },
});

function labelled(problems: readonly YesNoQuestion[]): LabelledCompletion<YesNoQuestion>[] {
  return problems.flatMap((problem) => {
    const { answer, question } = problem;
    const word = answer.replace('.', '');
    const other = word === 'Yes' ? 'No' : 'Yes';
    const good = { 'with a stop': answer, 'without one': word, 'in small letters': ` ${word.toLowerCase()}\n` };
    const bad = {
      'the other word': `${other}.`,
      both: `${word}. ${other}.`,
      'goes on': `${word}, because it is so.`,
      'in a sentence': `The answer is ${word.toLowerCase()}.`,
      'question first': `${question} ${word}`,
    };
    return [
      ...Object.entries(good).map(([kind, completion]) => ({ problem, label: 'good' as const, completion, kind })),
      ...Object.entries(bad).map(([kind, completion]) => ({ problem, label: 'bad' as const, completion, kind })),
    ];
  });
}
