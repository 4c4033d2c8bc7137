/** The textbook as batches of datums: lines such as `27+58=85`, one to a datum, and now and then a batch of chats. */

import type { DatumFor, Tokenizer } from 'loopwright';
import { type ArithmeticEnvironment, createRandom, mixSeed, sftDatum } from 'loopwright';
import { type TextbookExample, type TextbookOptions, textbookExample } from './textbook.js';
import { specialTokenId } from './tokenizer-files.js';

export interface CorpusOptions extends TextbookOptions {
  readonly seed: number;
  /** Examples of a batch. */
  readonly batchSize: number;
  /** Every batch with a number divisible by this is written as chats; half as many, since a chat is twice as long. */
  readonly chatEvery: number;
}

export interface CorpusSource {
  readonly environment: ArithmeticEnvironment;
  readonly tokenizer: Tokenizer;
}

/** Whether the batch of a step is written as chats. Chats have batches of their own, or every line would be padded to their length. */
export function isChatStep({ chatEvery }: Pick<CorpusOptions, 'chatEvery'>, step: number): boolean {
  return step % chatEvery === 0;
}

/** What the batch of a step is made of, a function of seed and step alone, so that a run can be taken up anywhere. @param step from 1 */
export function corpusExamples(
  environment: ArithmeticEnvironment,
  options: CorpusOptions,
  step: number,
): TextbookExample[] {
  const random = createRandom(mixSeed(options.seed, step));
  const count = isChatStep(options, step) ? Math.ceil(options.batchSize / 2) : options.batchSize;
  return Array.from({ length: count }, () => textbookExample(environment, random, options));
}

/**
 * The batch of a step. Weights make the loss the mean over answer tokens: neither learning rate nor clip depends on the size
 * of the batch. Questions are given, not learnt: their digits are random.
 *
 * @param step from 1
 */
export function corpusBatch(
  { environment, tokenizer }: CorpusSource,
  options: CorpusOptions,
  step: number,
): DatumFor<'cross_entropy'>[] {
  const isChat = isChatStep(options, step);
  const end = specialTokenId(isChat ? '<|im_end|>' : '<|eos|>');
  const examples = corpusExamples(environment, options, step).map(({ problem, answer }) => ({
    prompt: isChat
      ? tokenizer.applyChatTemplate([{ role: 'user', content: problem.question }], { addGenerationPrompt: true })
      : tokenizer.encode(problem.question),
    completion: [...tokenizer.encode(answer), end],
  }));
  const learnt = examples.reduce((sum, { completion }) => sum + completion.length, 0);
  return examples.map(({ prompt, completion }) =>
    sftDatum({ prompt, completion, weights: completion.map(() => 1 / learnt) }),
  );
}
