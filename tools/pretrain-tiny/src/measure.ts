/** What a model can do before any reward: sampled, greedy, best of eight, and through its chat template. */

import {
  type ArithmeticEnvironment,
  type ArithmeticProblem,
  type Interval,
  type Sampler,
  type Tokenizer,
  wilsonInterval,
} from 'loopwright';

export interface Share {
  readonly correct: number;
  readonly n: number;
  /** Wilson, 95 %. */
  readonly interval: Interval;
}

export interface Measurement {
  /** One sample at temperature 1 to each problem. */
  readonly sampled: Share;
  /** Those of them whose numbers both have two digits, and the others. */
  readonly twoDigits: Share;
  readonly oneDigit: Share;
  readonly greedy: Share;
  /** Problems that at least one of eight samples solves. */
  readonly bestOfEight: Share;
  /** As `sampled`, asked through the chat template. */
  readonly chat: Share;
}

export interface MeasureOptions {
  readonly sampler: Sampler;
  readonly environment: ArithmeticEnvironment;
  readonly tokenizer: Tokenizer;
  readonly problems: readonly ArithmeticProblem[];
  readonly seed: number;
}

export async function measure({
  sampler,
  environment,
  tokenizer,
  problems,
  seed,
}: MeasureOptions): Promise<Measurement> {
  const asLine = ({ question }: ArithmeticProblem): number[] => tokenizer.encode(question);
  const asChat = ({ question }: ArithmeticProblem): number[] =>
    tokenizer.applyChatTemplate([{ role: 'user', content: question }], { addGenerationPrompt: true });
  /** Rewards (problems, samples). */
  const rewards = (prompt: (problem: ArithmeticProblem) => number[], numSamples: number, temperature: number) =>
    Promise.all(
      problems.map(async (problem, i) => {
        const options = { numSamples, temperature, maxTokens, seed: seed + i };
        const { sequences } = await sampler.sample(prompt(problem), options);
        return Promise.all(
          sequences.map(async ({ tokens, stopReason }) => {
            const grade = await environment.grade({ problem, text: tokenizer.decode(tokens), stopReason });
            return grade.status === 'ok' && grade.reward === 1;
          }),
        );
      }),
    );
  const eight = await rewards(asLine, 8, 1);
  const first = eight.map((samples) => samples[0] === true);
  const isLong = problems.map(({ a, b }) => a > 9 && b > 9);
  return {
    sampled: share(first),
    twoDigits: share(first.filter((_, i) => isLong[i])),
    oneDigit: share(first.filter((_, i) => !isLong[i])),
    bestOfEight: share(eight.map((samples) => samples.includes(true))),
    greedy: share((await rewards(asLine, 1, 0)).flat()),
    chat: share((await rewards(asChat, 1, 1)).flat()),
  };
}

/** The longest answer has three digits and an end. */
const maxTokens = 8;

function share(right: readonly boolean[]): Share {
  const correct = right.filter(Boolean).length;
  return { correct, n: right.length, interval: wilsonInterval(correct, right.length) };
}
