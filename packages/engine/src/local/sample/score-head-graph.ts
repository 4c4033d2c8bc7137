/**
 * The output projection over some positions of a prompt: log-probabilities of the tokens that follow, and of the likeliest.
 *
 * A program of its own, so that logits are held of some hundred positions at a time and not of a whole prompt: 4,096 positions of
 * 49,152 logits are 0.8 GB. N positions, T tokens whose values are wanted at each, D hidden width, V vocabulary, P blocks of 16 ranks.
 */
import { add, compile, Graph, gatherElements, type LoweredProgram, logSoftmax, matMul, topK } from '@loopwright/graph';
import type { ModelConfig } from '../models/config.js';
import { headWeightName } from '../models/weight-names.js';
import { lowRank, lowRankInputs } from './low-rank.js';

export interface ScoreHeadKind {
  /** Likeliest tokens wanted at each position; 0 for none. */
  readonly topK: number;
  readonly adapted: boolean;
}

/** Inputs: `hidden` [N,D], `targets` int64 [N,T], the head's weight by its name [V,D]; where `adapted`, `head.A` [P,16,D] and `head.B` [V,16·P]. Outputs: `logprobs` [N,T] and, with topK, `top_logprobs`, `top_ids` [N,topK]. */
export function buildScoreHeadGraph(config: ModelConfig, { topK: k, adapted }: ScoreHeadKind): LoweredProgram {
  const { hiddenSize: D, vocabSize: V } = config;
  const graph = new Graph();
  const hidden = graph.input('hidden', 'float32', ['N', D]);
  const targets = graph.input('targets', 'int64', ['N', 'T']);
  const base = matMul(hidden, graph.input(headWeightName(config), 'float32', [V, D]), { transposeB: true });
  const adapter = () => lowRankInputs(graph, { name: (part) => `head.${part}`, blocks: 'P', inner: D, out: V });
  const all = logSoftmax(adapted ? add(base, lowRank(hidden, adapter())) : base);
  const logprobs = gatherElements(all, targets);
  if (k === 0) return compile(graph, { logprobs });
  const { values, indices } = topK(all, k);
  return compile(graph, { logprobs, top_logprobs: values, top_ids: indices });
}
