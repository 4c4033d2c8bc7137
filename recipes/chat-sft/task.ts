/** How replies are judged: in the house's style or not, and with the customer's own name, order and matter. */
import { defineTask, type Environment, type LabelledCompletion } from 'loopwright';
import { config } from './config.js';
import { type Letter, letters, replyTo, signOff } from './letters.js';

const style =
  /^Dear (\w+), we have your letter about ([\w ]+) \(order (\d+)\)\. You will hear from us within one working day\. (.*)$/;

export const train = letters({ set: 'train', count: config.train, seed: 1 });
export const heldOut = letters({ set: 'heldOut', count: config.heldOut, seed: 2 });

export const environment: Environment<Letter> = {
  name: 'house-style',
  draw: (random) => train[random.integer(train.length)]!, // in range
  prompt: ({ question }, tokenizer) =>
    tokenizer.applyChatTemplate([{ role: 'user', content: question }], { addGenerationPrompt: true }),
  grade({ problem, text }) {
    const [, customer, matter, order, end] = style.exec(text.trim()) ?? [];
    if (end !== signOff) return { status: 'unparsed', reward: 0, reason: 'not in the style of the house' };
    const isTrue = customer === problem.customer && matter === problem.matter && order === problem.order;
    return { status: 'ok', reward: isTrue ? 1 : 0 };
  },
};

export const task = defineTask({
  name: 'chat-sft',
  environment,
  ...{ train, heldOut },
  model: 'HuggingFaceTB/SmolLM2-135M-Instruct',
  cases: labelled(heldOut.slice(0, 4)),
  settings: { maxTokens: config.maxTokens, learningRate: config.learningRate, rank: config.rank },
});

function labelled(problems: readonly Letter[]): LabelledCompletion<Letter>[] {
  return problems.flatMap((problem) => {
    const { customer, order, answer } = problem;
    const good = { 'as the house writes': answer, 'blanks around it': ` ${answer}\n`, 'made anew': replyTo(problem) };
    const bad = {
      'another customer': answer.replace(customer, 'Gustav'),
      'another order': answer.replace(order, String(Number(order) + 1)),
      'another matter': answer.replace(problem.matter, 'a lost umbrella'),
      'no sign-off': answer.replace(` ${signOff}`, ''),
      'goes on after it': `${answer} Is there anything else?`,
      'the facts alone': `${customer}, order ${order}, ${problem.matter}`,
    };
    return [
      ...Object.entries(good).map(([kind, completion]) => ({ problem, label: 'good' as const, completion, kind })),
      ...Object.entries(bad).map(([kind, completion]) => ({ problem, label: 'bad' as const, completion, kind })),
    ];
  });
}
