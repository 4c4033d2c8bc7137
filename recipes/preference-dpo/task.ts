/** How answers are judged: by the units they are given in. What is measured can be wrong all the same: that is not what is preferred here. */
import { defineTask, type Environment, type LabelledCompletion } from 'loopwright';
import { config } from './config.js';
import { type Question, questions } from './measures.js';

const metric = /\b(?:(?:centi|kilo)?met(?:er|re)s?|kilometers|k?m|cm|kilo(?:gram)?s?|kg|grams?|tonnes?|kmh|kph)\b/i;
const other = /\b(?:feet|foot|ft|inch(?:es)?|yards?|miles?|mi|mph|pounds?|lbs?|ounces?|stones?)\b/i;

export const environment: Environment<Question> = {
  name: 'metric-units',
  draw: (random) => questions.train[random.integer(questions.train.length)]!, // in range
  prompt: ({ question }, tokenizer) =>
    tokenizer.applyChatTemplate([{ role: 'user', content: question }], { addGenerationPrompt: true }),
  grade({ text }) {
    const [isMetric, isOther] = [metric.test(text), other.test(text)];
    if (!isMetric && !isOther) return { status: 'unparsed', reward: 0, reason: 'no unit' };
    return { status: 'ok', reward: isMetric && !isOther ? 1 : 0 };
  },
};

export const task = defineTask({
  name: 'preference-dpo',
  environment,
  ...questions,
  model: 'HuggingFaceTB/SmolLM2-135M-Instruct',
  cases: labelled(questions.heldOut.slice(0, 3)),
  badFromGood: { without: ['wrong-answer', 'comma', 'sign', 'epsilon', 'injected-instruction'] }, // numbers may be wrong
  settings: { maxTokens: config.maxTokens, learningRate: config.learningRate, rank: config.rank },
});

function labelled(of: readonly Question[]): LabelledCompletion<Question>[] {
  return of.flatMap((problem) => {
    const { chosen, rejected } = problem;
    const good = {
      chosen,
      short: chosen.replace('meters', 'm'),
      'spelt otherwise': chosen.replace('meters', 'metres'),
      'with more words': `Good question! ${chosen}`,
    };
    const bad = {
      rejected,
      both: `${rejected} ${chosen}`,
      'in brackets': chosen.replace('.', ' (10 ft).'),
      'no unit': `${problem.thing} is very large.`,
    };
    return [
      ...Object.entries(good).map(([kind, completion]) => ({ problem, label: 'good' as const, completion, kind })),
      ...Object.entries(bad).map(([kind, completion]) => ({ problem, label: 'bad' as const, completion, kind })),
    ];
  });
}
