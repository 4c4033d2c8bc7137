import { type Datum, floatTensor, idTensor, type LossSpec } from '@loopwright/protocol';
import { describe, expect, it } from 'vitest';
import { crossEntropy, prompt } from '../testing/tiny-engine.js';
import { branchStarts, fillSegments, packRows } from './packed-row.js';

const importanceSampling: LossSpec = { name: 'importance_sampling' };
const options = { maxTokens: 10_000, attentionTokens: 10_000 };

/** A datum of a prompt and an answer: weights, advantages and log-probabilities are 0 where prompt tokens are predicted. */
function answer(question: Int32Array, tokens: readonly number[], more: Partial<Datum> = {}): Datum {
  const ids = Int32Array.from([...question, ...tokens]);
  const silent = question.length - 1;
  const values = (value: number) => floatTensor(Float32Array.from(ids.slice(1), (_, i) => (i < silent ? 0 : value)));
  return {
    modelInput: ids.slice(0, -1),
    targetTokens: idTensor(ids.slice(1)),
    weights: values(1),
    advantages: values(0.5),
    logprobs: values(-1),
    ...more,
  };
}

describe('datums of one prompt', () => {
  const question = prompt(20);
  const group = [
    [5, 6, 7],
    [5, 6, 8, 9],
    [11, 12],
  ].map((tokens) => answer(question, tokens));

  it('share all of it but the last token, which predicts what differs', () => {
    const [row, ...others] = packRows(group, importanceSampling, options);
    expect(others).toEqual([]);
    expect(row).toMatchObject({ trunk: 19, tokens: 19 + 3 + 4 + 2 });
    expect([...row!.datums].sort()).toEqual([0, 1, 2]);
  });

  it('find each other among those of other prompts', () => {
    const other = [[1], [2]].map((tokens) => answer(prompt(15, 3), tokens));
    const rows = packRows([group[0]!, other[0]!, group[1]!, other[1]!], importanceSampling, options);
    expect(rows.map(({ datums }) => [...datums].sort()).sort()).toEqual([
      [0, 2],
      [1, 3],
    ]);
  });

  it('are told apart where an answer is trained, though all begin alike', () => {
    const [row] = packRows([answer(question, [5, 6, 7]), answer(question, [5, 6, 7])], importanceSampling, options);
    expect(row!.trunk).toBe(19);
  });

  it('share what no advantage trains, too', () => {
    const dead = [5, 6].map((last) => {
      const { weights: _, ...rest } = answer(question, [9, last]);
      return { ...rest, advantages: floatTensor(new Float32Array(21)) };
    });
    expect(packRows(dead, importanceSampling, options)[0]).toMatchObject({ trunk: 20, tokens: 22 });
    expect(packRows(dead, { name: 'dro', beta: 0.05 }, options)).toHaveLength(2);
  });

  it('go apart where tokens of the prompt are trained', () => {
    const trained = group.map(({ weights: _, ...rest }) => rest);
    expect(packRows(trained, crossEntropy, options)).toHaveLength(3);
  });

  it('go apart where targets or temperatures of the prompt differ', () => {
    const [a, b] = [group[0]!, group[1]!];
    const targets = b.targetTokens.data.slice();
    targets[4] = 99;
    const [row] = packRows([a, { ...b, targetTokens: idTensor(targets) }], importanceSampling, options);
    expect(row!.trunk).toBe(4);
    const hot = { ...b, temperature: floatTensor(new Float32Array(b.modelInput.length).fill(0.7)) };
    expect(packRows([a, hot], importanceSampling, options)).toHaveLength(2);
  });

  it('make rows of bounded length', () => {
    const rows = packRows(group, importanceSampling, { ...options, maxTokens: 27 });
    expect(rows.map(({ tokens }) => tokens).every((tokens) => tokens <= 27)).toBe(true);
    expect(rows).toHaveLength(2);
  });

  it('go apart where attention over one long row would cost more than the prompt again', () => {
    const long = [1, 2].map((first) => answer(prompt(4), [first, ...prompt(400)]));
    expect(packRows(long, importanceSampling, { ...options, attentionTokens: 1000 })).toHaveLength(2);
  });

  it('are each a segment of their own beside the prompt and the padding', () => {
    const row = { datums: [0, 2], trunk: 19, tokens: 19 + 3 + 2 };
    expect(branchStarts(group, row)).toEqual([19, 22]);
    const segments = new BigInt64Array(28);
    fillSegments(segments, group, row);
    const of = (value: number, count: number) => new Array<number>(count).fill(value);
    expect([...segments].map(Number)).toEqual([...of(0, 19), ...of(1, 3), ...of(2, 2), ...of(-1, 4)]);
  });
});
