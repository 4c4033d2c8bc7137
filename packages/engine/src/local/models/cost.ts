/** What tokens cost in a training pass, as far as the plan of micro-batches needs to know. */
import type { ModelConfig } from './config.js';
import { queryBlocks } from './sequence-form.js';
import { weightSpecs } from './weight-names.js';

/** Scores are computed in smaller products and pass through softmax: measured, they take about twice as long as their multiplications say. */
const scoreOverhead = 2; // a change of it changes which datums share a row, and so last bits of passes in older logs

/**
 * Tokens of one row at which its attention costs as much as everything else: per token 4 operations a weight (forward and the gradient
 * by the input) against, per pair of tokens, 12 a layer and hidden dimension (two products, three passes), of which blocks skip some.
 */
export function attentionTokens(config: ModelConfig): number {
  const weights = weightSpecs(config).reduce((sum, { name, shape }) => {
    const isLooked = name === 'model.embed_tokens.weight' && !config.tiedEmbeddings;
    return shape.length < 2 || isLooked ? sum : sum + shape[0]! * shape[1]!;
  }, 0);
  const computed = (queryBlocks + 1) / (2 * queryBlocks);
  return (4 * weights) / (12 * config.layers * config.heads * config.headDim * computed * scoreOverhead);
}
