/** What a model is asked: sequences to score, prompts to go on from, texts to cut into tokens. */
import { createRandom, type Tokenizer } from 'loopwright';

/** Shapes: N sequences or prompts of any length, token ids. */
export interface Cases {
  readonly sequences: readonly (readonly number[])[];
  readonly prompts: readonly (readonly number[])[];
  /** Greedy tokens behind each prompt; stop tokens don't stop. */
  readonly newTokens: number;
  readonly texts: readonly string[];
}

/** Prose, a chat's marks, numbers, code and other alphabets, so that a tokenizer's rules all come to work. */
const texts = [
  'The old lighthouse keeper climbed the stairs once more, counting each of the 127 steps as he had done every evening for thirty years.',
  'To make bread you need flour, water, salt and yeast. Mix them, wait for an hour, and then',
  'def mean(values):\n    """Average of a list."""\n    return sum(values) / len(values)\n\nprint(mean([1, 2, 3.5]))',
  'Die Brücke über den Fluss wurde 1908 gebaut – naïve café, 東京へ行きます, Привет мир! 🙂',
  '<|im_start|>user\nWhat is 12 + 7?<|im_end|>\n<|im_start|>assistant\n',
];

/** Of a text, this much is the prompt of a greedy continuation. */
const promptTokens = 24;
const newTokens = 24;

export function textCases(tokenizer: Tokenizer): Cases {
  const sequences = texts.map((text) => tokenizer.encode(text, { parseSpecialTokens: true }));
  return { sequences, prompts: sequences.map((ids) => ids.slice(0, promptTokens)), newTokens, texts };
}

/** For models without a tokenizer. */
export function randomCases({ vocabSize, seed }: { readonly vocabSize: number; readonly seed: number }): Cases {
  const random = createRandom(seed);
  const sequences = [40, 23, 64].map((length) => Array.from({ length }, () => 3 + random.integer(vocabSize - 3)));
  return { sequences, prompts: sequences.map((ids) => ids.slice(0, promptTokens)), newTokens, texts: [] };
}

/** The same for a model of a shorter context. Behind the greedy tokens there is room for one more, which asking for their gaps draws. */
export function casesWithin({ sequences, prompts, newTokens, texts }: Cases, contextLength: number): Cases {
  const most = Math.min(newTokens, Math.floor(contextLength / 2));
  return {
    sequences: sequences.map((ids) => ids.slice(0, contextLength)),
    prompts: prompts.map((ids) => ids.slice(0, contextLength - most - 1)),
    newTokens: most,
    texts,
  };
}
