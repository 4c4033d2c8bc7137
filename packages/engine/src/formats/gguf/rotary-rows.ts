/**
 * The order of rows in the query and key matrices. Rotary embedding turns pairs of rows of a head: row i with row i + d/2 in Hugging
 * Face files, neighbours in GGUF files of some architectures (llama), whose converter interleaves the halves.
 */
import type { ModelConfig } from '../../local/models/config.js';

export interface HeadRows {
  readonly headDim: number;
  /** Values in a row. */
  readonly width: number;
}

/** The rows that are in another order, by the name in Hugging Face files; undefined for tensors that are the same in both. */
export function headRows({ headDim, hiddenSize }: ModelConfig, name: string): HeadRows | undefined {
  const [, , part] = /\.self_attn\.(q_proj|k_proj)\.(weight|bias)$/.exec(name) ?? [];
  if (part === undefined) return undefined;
  return { headDim, width: part === 'weight' ? hiddenSize : 1 };
}

/** From neighbours to halves, in place: rows 0, 2, 4, … of a head go to its first half, rows 1, 3, 5, … to its second. */
export function splitRotaryPairs(values: Float32Array, rows: HeadRows): void {
  reorder(values, rows, (row, half) => (row < half ? 2 * row : 2 * (row - half) + 1));
}

/** From halves to neighbours, in place: what {@link splitRotaryPairs} undoes. */
export function joinRotaryPairs(values: Float32Array, rows: HeadRows): void {
  reorder(values, rows, (row, half) => (row % 2 === 0 ? row / 2 : half + (row - 1) / 2));
}

/** @param sourceOf which row of the head comes to this one */
function reorder(
  values: Float32Array,
  { headDim, width }: HeadRows,
  sourceOf: (row: number, half: number) => number,
): void {
  const head = new Float32Array(headDim * width);
  for (let start = 0; start < values.length; start += head.length) {
    head.set(values.subarray(start, start + head.length));
    for (let row = 0; row < headDim; row++) {
      const source = sourceOf(row, headDim / 2) * width;
      values.set(head.subarray(source, source + width), start + row * width);
    }
  }
}
