/** How programs over whole sequences are cut into blocks of queries, and what their backward passes compute again instead of keeping it. */
import { product } from '@loopwright/graph';
import type { RecomputePlan } from '../../engine.js';

export interface SequenceForm {
  /** Blocks of queries that a sequence is cut into, each multiplied with the keys up to its own end alone. */
  readonly blocks: number;
  /** Scores of attention are computed again, block by block: what is kept grows with the tokens, not with their square. */
  readonly attention: boolean;
  /** Layers are computed again, of which only what goes into them is kept. */
  readonly layers: boolean;
}

/** Blocks of sequences that are short enough: three eighths of the scores of causal attention are never computed. */
export const queryBlocks = 4;
/** Queries at most in a block whose scores are computed again: what is held for them is this many rows of scores a head. */
const blockQueries = 512;
/** More blocks than these make programs that take longer to load than they save. */
const mostBlocks = 16;

/** Sequences as sampling and older plans compute them. */
export const keptForm: SequenceForm = { blocks: queryBlocks, attention: false, layers: false };

/** Whether nothing is computed again. */
export const keepsAll = ({ attention, layers }: SequenceForm) => !attention && !layers;

/** The form of a micro-batch: a function of its sizes and the recorded plan alone. @param size rows and their padded length */
export function formOf(
  recompute: RecomputePlan | undefined,
  { rows, length }: { readonly rows: number; readonly length: number },
): SequenceForm {
  if (recompute === undefined) return keptForm;
  const attention = length > recompute.attentionOver;
  let blocks = queryBlocks;
  while (attention && blocks < mostBlocks && length > blocks * blockQueries) blocks *= 2;
  return { blocks, attention, layers: rows * length > recompute.layersOver };
}

/** Tokens that a sequence is padded to: whole blocks of queries, and whole multiples. @param recompute of the plan; without one there are four blocks whatever the length */
export function paddedLength(tokens: number, multiple: number, recompute?: RecomputePlan): number {
  const padded = (blocks: number) => {
    const step = Math.ceil(multiple / blocks) * blocks;
    return Math.ceil(tokens / step) * step;
  };
  const length = padded(queryBlocks);
  return recompute === undefined || length <= queryBlocks * blockQueries ? length : padded(mostBlocks);
}

/** S, the length of a sequence, by Q, the length of a block. */
export const sequenceLength = ({ blocks }: SequenceForm) => product([blocks, 'Q']);
