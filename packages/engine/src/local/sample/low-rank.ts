/**
 * The product of an adapter, B·(A·x), such that a row has the same bits whatever rows are beside it.
 *
 * The runtime shares a product out among threads by rows or by columns, depending on how many rows there are, and cuts its sums into
 * pieces by the columns that a thread got: with 48 columns a row had other last bits beside 12 others than by itself. Sixteen columns
 * are never shared out, so A is cut into blocks of 16 ranks.
 */
import { type Dim, type Graph, gather, matMul, product, reshape, transpose, type Value } from '@loopwright/graph';

/** Ranks in a block. */
export const rankBlock = 16;

/** A rank, padded to whole blocks. */
export const paddedRank = (rank: number) => Math.ceil(rank / rankBlock) * rankBlock;

/** The inputs A [P,16,in] and B [out,16·P] of an adapter of P blocks, zeros beyond its rank. */
export function lowRankInputs(
  graph: Graph,
  { name, blocks, inner, out }: { name: (part: 'A' | 'B') => string; blocks: string; inner: Dim; out: Dim },
): { readonly A: Value; readonly B: Value } {
  return {
    A: graph.input(name('A'), 'float32', [blocks, rankBlock, inner]),
    B: graph.input(name('B'), 'float32', [out, product([blocks, rankBlock])]),
  };
}

/** x [rows, in] → [rows, out]. */
export function lowRank(x: Value, { A, B }: { readonly A: Value; readonly B: Value }): Value {
  const [rows, inner] = [x.shape[0]!, x.shape[1]!]; // two axes each, by lowRankInputs
  const narrow = matMul(reshape(x, [1, rows, inner]), A, { transposeB: true }); // [P, rows, 16]
  const together = reshape(transpose(narrow, [1, 0, 2]), [rows, B.shape[1]!]);
  return matMul(together, B, { transposeB: true });
}

/** The inputs A [V,P,16,in] and B [V,out,16·P] of V adapters of P blocks. */
export function versionedLowRankInputs(
  graph: Graph,
  { name, blocks, inner, out }: { name: (part: 'A' | 'B') => string; blocks: string; inner: Dim; out: Dim },
): { readonly A: Value; readonly B: Value } {
  return {
    A: graph.input(name('A'), 'float32', ['V', blocks, rankBlock, inner]),
    B: graph.input(name('B'), 'float32', ['V', out, product([blocks, rankBlock])]),
  };
}

/** Which rows are of which version. */
export interface VersionPlaces {
  /** int64 [V,R]: the rows of each version, filled up with any. */
  readonly rows: Value;
  /** int64 [rows]: where each row stands in the above. */
  readonly place: Value;
}

/** x [rows, in] → [rows, out], each row with the adapter of its version. */
export function versionedLowRank(
  x: Value,
  { A, B }: { readonly A: Value; readonly B: Value },
  { rows, place }: VersionPlaces,
): Value {
  const [V, R] = [rows.shape[0]!, rows.shape[1]!]; // two axes, as the input is declared
  const inner = x.shape[1]!;
  const narrow = matMul(reshape(gather(x, rows), [V, 1, R, inner]), A, { transposeB: true }); // [V, P, R, 16]
  const together = reshape(transpose(narrow, [0, 2, 1, 3]), [V, R, B.shape[2]!]);
  const wide = matMul(together, B, { transposeB: true }); // [V, R, out]
  return gather(reshape(wide, [product([V, R]), B.shape[1]!]), place);
}
