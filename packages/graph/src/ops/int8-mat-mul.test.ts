import { describe, expect, it } from 'vitest';
import { compile } from '../compile.js';
import { Graph } from '../graph.js';
import { bytes, floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { seededRandom } from '../testing/random.js';
import { runOnnx } from '../testing/run-onnx.js';
import { build } from '../testing/tensor.js';
import { int8MatMul } from './int8-mat-mul.js';

describe('Int8MatMul', () => {
  itComputes('multiplies rows of any size by rounded weights', (random) => {
    const [inner, columns] = [random.int(1, 40), random.int(1, 20)];
    return {
      inputs: {
        x: floats(['N', inner], [-30, 30]),
        weight: bytes([inner, columns]),
        scale: floats([columns], [0.001, 0.01]),
      },
      outputs: ({ x, weight, scale }) => ({ y: int8MatMul(x!, weight!, scale!) }),
      wrt: [],
    };
  });

  itComputes('gives zeros for a row of zeros', () => ({
    inputs: { x: floats(['B', 'S', 5], [0, 0]), weight: bytes([5, 3]), scale: floats([3]) },
    outputs: ({ x, weight, scale }) => ({ y: int8MatMul(x!, weight!, scale!) }),
    wrt: [],
  }));

  it('gives a row the same bits alone and beside others of any size', async () => {
    const random = seededRandom(7);
    const [inner, columns] = [300, 100];
    const graph = new Graph();
    const weight = graph.constant(
      Int8Array.from({ length: inner * columns }, () => random.int(-64, 64)),
      [inner, columns],
    );
    const scale = graph.constant(
      Float32Array.from({ length: columns }, () => random.uniform() / 100),
      [columns],
    );
    const model = compile(graph, { y: int8MatMul(graph.input('x', 'float32', ['N', inner]), weight, scale) });
    const rows = build('float32', [17, inner], ([n]) => Math.fround((random.uniform() - 0.5) * 10 ** n!));
    const { y: together } = await runOnnx(model, { x: rows });
    for (let n = 0; n < 17; n++) {
      const x = { ...rows, shape: [1, inner], data: rows.data.slice(n * inner, (n + 1) * inner) };
      const { y: alone } = await runOnnx(model, { x });
      expect(alone!.data).toEqual(together!.data.slice(n * columns, (n + 1) * columns));
    }
  });

  const named = { x: floats(['N', 4]), weight: bytes([4, 3]), scale: floats([3]) };
  const apply = ({ x, weight, scale }: Parameters<Parameters<typeof itRefuses>[2]>[0]) =>
    int8MatMul(x!, weight!, scale!);
  itRefuses('rows of another length', { ...named, x: floats(['N', 5]) }, apply, ['Int8MatMul', '[N,5]', '[4,3]']);
  itRefuses('one scale for all', { ...named, scale: floats([1]) }, apply, ['Int8MatMul', '[1]', '[4,3]']);
  itRefuses('weights that are not rounded', { ...named, weight: floats([4, 3]) }, apply, ['int8', 'float32']);
  itRefuses('ids', { ...named, x: ids(['N', 4], 2) }, apply, ['Int8MatMul', 'int64']);
});
