/** Masks of causal attention, block by block of queries, made inside a program: fed whole they would be S² numbers a row, some times over. */
import {
  add,
  cast,
  cumSum,
  equal,
  expandLike,
  lessOrEqual,
  mul,
  product,
  reshape,
  slice,
  split,
  staticDim,
  sub,
  type Value,
  where,
} from '@loopwright/graph';
import type { SequenceForm } from './sequence-form.js';

/** Far below any score, and finite, so that a softmax over it gives exactly 0 without NaN. */
export const maskedOut = -1e9;

export interface MaskInputs {
  /** int64 [B, S], of the tokens in their sequence. */
  readonly positions: Value;
  /** int64 [B, S], where a row holds several sequences: 0 for tokens that all of them begin with, a number of its own for each other one. */
  readonly segments?: Value;
}

/** Equal parts of an axis of that many positions, the axis left out. */
export function parts(x: Value, axis: number): readonly Value[] {
  const sizes = new Array<number>(staticDim(x.shape, axis)).fill(1);
  return split(x, axis, sizes).map((part) => reshape(part, [...x.shape.slice(0, axis), ...x.shape.slice(axis + 1)]));
}

/**
 * The mask of each block of queries [B, 1, 1, Q, (i+1)·Q], for the keys up to its end: 0 where a token may look, {@link maskedOut} elsewhere.
 * A token sees those of its own segment and of segment 0 up to its own position, and with a `window` only the last so many.
 */
export function blockMasks({ positions, segments }: MaskInputs, { blocks }: SequenceForm, window?: number): Value[] {
  const { graph } = positions;
  const B = positions.shape[0]!;
  const [visible, hidden] = [graph.scalar(0), graph.scalar(maskedOut)];
  const common = graph.constant(BigInt64Array.of(0n), []);
  /** Of block i: what the queries have [B, Q, 1] and what the keys up to their end have [B, 1, (i+1)·Q]. */
  const pairs = (x: Value) => {
    const byBlock = reshape(x, [B, blocks, 'Q']);
    return parts(byBlock, 1).map((own, i) => ({
      queries: reshape(own, [B, 'Q', 1]),
      keys: reshape(slice(byBlock, 1, 0, i + 1), [B, 1, product([i + 1, 'Q'])]),
    }));
  };
  const owners = segments === undefined ? undefined : pairs(segments);
  return pairs(positions).map((at, i) => {
    let mask = visible;
    if (owners !== undefined) {
      const { queries, keys } = owners[i]!;
      mask = where(equal(keys, common), visible, where(equal(keys, queries), visible, hidden));
    }
    mask = where(lessOrEqual(at.keys, at.queries), mask, hidden);
    if (window !== undefined)
      mask = add(mask, beyondWindow(cast(at.queries, 'float32'), cast(at.keys, 'float32'), window));
    return reshape(mask, [B, 1, 1, 'Q', product([i + 1, 'Q'])]);
  });
}

/** A large negative number where key positions lie `tokens` or more before query positions, 0 elsewhere. Both of float32. */
function beyondWindow(queries: Value, keys: Value, tokens: number): Value {
  const far = cast(lessOrEqual(queries.graph.scalar(tokens), sub(queries, keys)), 'float32');
  return mul(far, queries.graph.scalar(maskedOut));
}

/** A mask [B, 1, 1, T] of cached tokens, of which the one at t has position t, narrowed to the window. @param positions int64 [B, 1], of the newest tokens */
export function pastWindowMask(mask: Value, positions: Value, tokens: number): Value {
  const one = mask.graph.scalar(1);
  const keys = sub(cumSum(expandLike(one, mask), 3), one);
  return add(mask, beyondWindow(reshape(cast(positions, 'float32'), [mask.shape[0]!, 1, 1, 1]), keys, tokens));
}
