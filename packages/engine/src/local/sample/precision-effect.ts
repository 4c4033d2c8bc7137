/** How far sampling by rounded weights is from float32, measured on a short text of the model's own. */
import type { SamplingParams } from '@loopwright/protocol';
import type { Engine } from '../../engine.js';
import type { PrecisionEffect } from '../../precision.js';
import type { ModelConfig } from '../models/config.js';

const texts = 4;
const newTokens = 64;
const base = { type: 'base' } as const;
const drawn: SamplingParams = {
  ...{ maxTokens: newTokens, temperature: 1, topK: -1, topP: 1, seed: 1 },
  ...{ stop: [], stopTokenIds: [], ignoreEos: true },
};

/** Draws some texts from where a text begins, and one of the likeliest tokens; both are then scored in float32. */
export async function measurePrecisionEffect(
  engine: Pick<Engine, 'sample' | 'computeLogprobs'>,
  { bosTokenId, eosTokenIds }: Pick<ModelConfig, 'bosTokenId' | 'eosTokenIds'>,
): Promise<PrecisionEffect> {
  const prompt = Int32Array.of(bosTokenId ?? eosTokenIds[0] ?? 0);
  const request = { weights: base, prompt, promptLogprobs: false, topkPromptLogprobs: 0 };
  const [random, likeliest] = await Promise.all([
    engine.sample({ ...request, numSamples: texts, params: drawn }),
    engine.sample({ ...request, numSamples: 1, params: { ...drawn, temperature: 0 }, topkSampleLogprobs: 1 }),
  ]);
  const differences: number[] = [];
  for (const { tokens, logprobs } of random.sequences) {
    const whole = Int32Array.from([...prompt, ...tokens]);
    const scored = await engine.computeLogprobs({ prompt: whole, weights: base });
    logprobs.forEach((logprob, i) => {
      differences.push(Math.abs(logprob - scored.logprobs[prompt.length + i]!));
    });
  }
  const { tokens, topkLogprobs = [] } = likeliest.sequences[0]!; // one was asked for
  const same = topkLogprobs.filter((top, i) => top[0]?.tokenId === tokens[i]).length;
  return {
    meanDifference: differences.reduce((a, b) => a + b, 0) / differences.length,
    largestDifference: Math.max(...differences),
    sameLikeliest: same / tokens.length,
    tokens: differences.length + tokens.length,
  };
}
