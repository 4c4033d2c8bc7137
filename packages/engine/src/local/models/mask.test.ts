import { compile, Graph, type Value } from '@loopwright/graph';
import { describe, expect, it } from 'vitest';
import { Compiled, floats, loadRuntime, TensorFactory } from '../ort/runtime.js';
import { blockMasks, maskedOut } from './mask.js';
import { sequenceLength } from './sequence-form.js';

const trunk = [0, 0, 0];
/** A trunk of three tokens, branches of two and three, padding. */
const positions = [...[0, 1, 2], ...[3, 4], ...[3, 4, 5], ...[0, 0, 0, 0]];
const segments = [...trunk, 1, 1, 2, 2, 2, -1, -1, -1, -1];

/** For each token the places of those that it sees, from masks of four or two blocks. */
async function seen({ blocks, window, packed = true }: { blocks: number; window?: number; packed?: boolean }) {
  const form = { blocks, attention: false, layers: false };
  const graph = new Graph();
  const input = (name: string) => graph.input(name, 'int64', ['B', sequenceLength(form)]);
  const inputs = { positions: input('positions'), ...(packed ? { segments: input('segments') } : {}) };
  const masks = blockMasks(inputs, form, window);
  const tensors = new TensorFactory(await loadRuntime());
  const feed = (values: readonly number[]) => tensors.int(BigInt64Array.from(values, BigInt), [1, values.length]);
  const outputs: Record<string, Value> = Object.fromEntries(masks.map((mask, i) => [`mask ${i}`, mask]));
  await using compiled = await Compiled.load(compile(graph, outputs), { threads: 1 });
  const feeds = { positions: feed(packed ? positions : positions.map((_, i) => i)) };
  const found = await compiled.run(packed ? { ...feeds, segments: feed(segments) } : feeds, Object.keys(outputs));
  return masks.flatMap((_, i) => {
    const mask = floats(found, `mask ${i}`);
    const Q = positions.length / blocks;
    const keys = (i + 1) * Q;
    expect(mask).toHaveLength(Q * keys);
    for (const value of mask) expect(value === 0 || value <= Math.fround(maskedOut)).toBe(true);
    return Array.from({ length: Q }, (_, q) =>
      Array.from({ length: keys }, (_, k) => k).filter((k) => mask[q * keys + k] === 0),
    );
  });
}

describe('masks of blocks of queries', () => {
  it('let each token see its sequence up to itself, wherever the blocks end', async () => {
    for (const blocks of [2, 4]) {
      const rows = await seen({ blocks });
      expect(rows.slice(0, 8)).toEqual([
        [0],
        [0, 1],
        [0, 1, 2],
        [0, 1, 2, 3],
        [0, 1, 2, 3, 4],
        [0, 1, 2, 5],
        [0, 1, 2, 5, 6],
        [0, 1, 2, 5, 6, 7],
      ]);
      // Padding must see something, or its softmax would be NaN.
      for (const row of rows.slice(8)) expect(row.length).toBeGreaterThan(0);
    }
  });

  it('are causal where a row is one sequence', async () => {
    const rows = await seen({ blocks: 4, packed: false });
    expect(rows).toEqual(positions.map((_, i) => Array.from({ length: i + 1 }, (_, j) => j)));
  });

  it('narrow to a window of the last tokens by position', async () => {
    const rows = await seen({ blocks: 4, window: 3 });
    expect(rows.slice(0, 8)).toEqual([[0], [0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [1, 2, 5], [2, 5, 6], [5, 6, 7]]);
  });
});
