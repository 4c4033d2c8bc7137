/** Cutting and merging batches. */
import { type Datum, floatTensor, idTensor, type PassResult } from '@loopwright/protocol';
import { expect, test } from 'vitest';
import { mergePasses, splitBatch } from './batches.js';

function datumOf(length: number): Datum {
  const ids = new Int32Array(length);
  return { modelInput: ids, targetTokens: idTensor(ids), weights: floatTensor(new Float32Array(length)) };
}

test('parts keep both limits and the order, and a datum above them stands alone', () => {
  const data = [10, 20, 500, 30, 40, 50, 60].map(datumOf); // 30 bytes a token
  const lengths = splitBatch(data, { datums: 3, bytes: 3000 }).map((part) =>
    part.map(({ modelInput }) => modelInput.length),
  );
  expect(lengths).toEqual([[10, 20], [500], [30, 40], [50], [60]]);
});

test('what fits is one part', () => {
  expect(splitBatch([datumOf(1), datumOf(2)])).toHaveLength(1);
});

function pass(count: number, metrics: Record<string, number>): PassResult {
  return {
    outputs: Array.from({ length: count }, (_, index) => ({ logprobs: Float32Array.of(index), loss: 1 })),
    lossSum: count,
    metrics,
    trainingTokens: count * 2,
  };
}

test('metrics merge by the end of their names', () => {
  const first = pass(3, {
    global_token_num: 6,
    'ratio/max': 2,
    'ratio/min': 0.5,
    'loss:sum': 3,
    'actor/grad_norm': 1,
    loss: 1,
    normal: 1,
  });
  const last = pass(1, {
    global_token_num: 2,
    'ratio/max': 1,
    'ratio/min': 0.1,
    'loss:sum': 1,
    'actor/grad_norm': 9,
    loss: 5,
    normal: 5,
    extra: 7,
  });
  const merged = mergePasses([first, last]);
  expect(merged.metrics).toEqual({
    global_token_num: 8,
    'ratio/max': 2,
    'ratio/min': 0.1,
    'loss:sum': 4,
    'actor/grad_norm': 9,
    loss: 2,
    normal: 2,
    extra: 7,
  });
  expect(merged).toMatchObject({ lossSum: 4, trainingTokens: 8 });
  expect(merged.outputs).toHaveLength(4);
});
