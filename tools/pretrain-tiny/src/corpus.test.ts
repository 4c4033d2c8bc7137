import { allProblems, arithmeticSpace, arithmeticSplit } from '@loopwright/loops';
import { loadTokenizer } from '@loopwright/text';
import { arithmetic } from 'loopwright';
import { describe, expect, it } from 'vitest';
import { corpusBatch, corpusExamples, isChatStep } from './corpus.js';
import { pretrainingSettings } from './settings.js';
import { specialTokenId, tokenizerFiles } from './tokenizer-files.js';

const files = tokenizerFiles({ contextLength: 1024 });
const tokenizer = loadTokenizer({
  tokenizerJson: files['tokenizer.json']!,
  tokenizerConfigJson: files['tokenizer_config.json'],
});
const source = { environment: arithmetic(), tokenizer };
const options = { ...pretrainingSettings.corpus, seed: pretrainingSettings.seed };

type Datum = ReturnType<typeof corpusBatch>[number];

/** Inputs of one target a position, which are flat. */
function numbers(input: Datum['lossFnInputs']['targetTokens']): number[] {
  return [...input].flat();
}

/** The whole text of a datum: its input and the last target. */
function textOf({ modelInput, lossFnInputs }: Datum): string {
  return tokenizer.decode([...modelInput, ...numbers(lossFnInputs.targetTokens).slice(-1)], {
    skipSpecialTokens: false,
  });
}

describe('the corpus that the bundled model was pretrained on', () => {
  it('holds no problem of the rl and held-out sets, and nearly all of the pretrain set', () => {
    const sets = new Map(
      [...allProblems(arithmeticSpace())].map((problem) => [problem.question, arithmeticSplit(problem)]),
    );
    const seen = new Set<string>();
    for (let step = 1; step <= pretrainingSettings.schedule.steps; step++)
      for (const { problem } of corpusExamples(source.environment, options, step)) seen.add(problem.question);
    expect([...seen].filter((question) => sets.get(question) !== 'pretrain')).toEqual([]);
    const pretrain = [...sets.values()].filter((set) => set === 'pretrain').length;
    expect(seen.size).toBeGreaterThan(0.99 * pretrain);
  });

  it('writes those problems and no others', () => {
    for (const step of [1, 2, options.chatEvery]) {
      const questions = corpusBatch(source, options, step).map((datum) => /\d+[+-]\d+=/.exec(textOf(datum))?.[0]);
      expect(questions).toEqual(
        corpusExamples(source.environment, options, step).map(({ problem }) => problem.question),
      );
    }
  });

  it('has nothing but one question, one answer and an end in a line', () => {
    for (const datum of corpusBatch(source, options, 1))
      expect(textOf(datum)).toMatch(/^\d+[+-]\d+=(\d+|\?)<\|eos\|>$/);
  });

  it('is a function of seed and step', () => {
    expect(corpusBatch(source, options, 7)).toEqual(corpusBatch(source, options, 7));
    expect(corpusBatch(source, options, 7)).not.toEqual(corpusBatch(source, options, 6));
    expect(corpusBatch(source, options, 7)).not.toEqual(corpusBatch(source, { ...options, seed: 2 }, 7));
  });

  it('learns answers and their ends alone, with weights that sum to 1 in every batch', () => {
    for (const step of [1, options.chatEvery]) {
      const batch = corpusBatch(source, options, step);
      const weights = batch.flatMap(({ lossFnInputs }) => numbers(lossFnInputs.weights));
      expect(weights.reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 12);
      for (const { lossFnInputs } of batch) {
        const learnt = numbers(lossFnInputs.targetTokens).filter((_, i) => numbers(lossFnInputs.weights)[i]! > 0);
        expect(tokenizer.decode(learnt)).toMatch(/^(\d+|\?)$/);
        expect(learnt.at(-1)).toBe(specialTokenId(isChatStep(options, step) ? '<|im_end|>' : '<|eos|>'));
      }
    }
  });

  it('has chats in batches of their own', () => {
    expect(isChatStep(options, options.chatEvery)).toBe(true);
    for (const datum of corpusBatch(source, options, options.chatEvery))
      expect(textOf(datum)).toMatch(
        /^<\|im_start\|>user\n\d+[+-]\d+=<\|im_end\|>\n<\|im_start\|>assistant\n(\d+|\?)<\|im_end\|>$/,
      );
  });
});
