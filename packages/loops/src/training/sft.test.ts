import { LoopwrightError } from '@loopwright/protocol';
import { describe, expect, it } from 'vitest';
import { sftDatum } from '../datums/sft-datum.js';
import { Bandit, characterTokenizer, copyEnvironment, copyProblem } from '../testing/bandit.js';
import { evaluate } from './evaluate.js';
import { runSft, type SftStep } from './sft.js';

const tokenizer = characterTokenizer();
const example = (digit: number) => {
  const { question, answer } = copyProblem(digit);
  return sftDatum({ prompt: tokenizer.encode(question), completion: tokenizer.encode(answer) });
};
const data = [0, 1, 2, 3].flatMap((digit) => [example(digit), example(digit)]);
const heldOut = [0, 3].map(example);
const onNotice = () => undefined;

describe('runSft', () => {
  it('lowers the loss on examples it never saw, from chance', async () => {
    const { heldOutLoss } = await runSft({ training: new Bandit(), data, heldOut, epochs: 10, batchSize: 4, onNotice });
    expect(heldOutLoss?.before).toBeCloseTo(Math.log(17), 12);
    expect(heldOutLoss?.after).toBeLessThan(0.2);
  });

  it('can be looked at before the first step, in the middle and after the last', async () => {
    const seen: [number, number][] = [];
    const problems = [0, 1, 2, 3].map(copyProblem);
    await runSft({
      ...{ training: new Bandit(), data, epochs: 5, batchSize: 4, onNotice },
      onSampler: async ({ sampler, step, totalSteps }) => {
        expect(totalSteps).toBe(10);
        const { correct } = await evaluate(sampler, {
          environment: copyEnvironment,
          tokenizer,
          problems,
          maxTokens: 1,
        });
        seen.push([step, correct]);
      },
    });
    expect(seen.map(([step]) => step)).toEqual([0, 5, 10]);
    expect([seen[0]?.[1], seen[2]?.[1]]).toEqual([1, 4]);
  });

  it('takes every example once an epoch, in an order of the seed', async () => {
    const seen = async (seed: number): Promise<number[]> => {
      const rows: number[] = [];
      const training = new Bandit({
        onCall: (name, detail) => {
          if (name !== 'forward-backward') return;
          // true: passes are noted with their data
          for (const { modelInput } of detail as readonly { modelInput: readonly number[] }[])
            rows.push(modelInput[0] ?? -1);
        },
      });
      await runSft({ training, data, epochs: 2, batchSize: 3, seed, onNotice });
      return rows;
    };
    const rows = await seen(1);
    expect(rows.slice(0, 8).toSorted()).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
    expect(rows.slice(8).toSorted()).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
    expect(await seen(1)).toEqual(rows);
    expect(await seen(2)).not.toEqual(rows);
  });

  it('ends after `maxSteps`, with the batches that a longer run begins with', async () => {
    const options = {
      training: new Bandit(),
      data,
      epochs: 2,
      batchSize: 3,
      seed: 1,
      now: () => 0,
      onNotice: () => {},
    };
    const { metrics } = await runSft(options);
    expect(metrics).toHaveLength(6);
    const shorter = await runSft({ ...options, training: new Bandit(), maxSteps: 4 });
    expect(shorter.metrics).toEqual(metrics.slice(0, 4));
    const none = runSft({ ...options, maxSteps: 0 });
    await expect(none).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'options.maxSteps' } });
  });

  it('reports the mean loss per weighted target token', async () => {
    const steps: SftStep[] = [];
    const weighted = sftDatum({ prompt: [1], completion: [1], weights: [3] });
    await runSft({ training: new Bandit(), data: [weighted, example(2)], onStep: (step) => void steps.push(step) });
    expect(steps).toHaveLength(1);
    expect(steps[0]).toMatchObject({ step: 1, totalSteps: 1, metrics: { 'tokens/target': 4, 'tokens/trained': 3 } });
    expect(steps[0]!.metrics['loss/mean']).toBeCloseTo(Math.log(17), 12);
  });

  it('leaves the held-out loss out where there are no such examples', async () => {
    expect(await runSft({ training: new Bandit(), data })).not.toHaveProperty('heldOutLoss');
  });

  it('stops when told to', async () => {
    const controller = new AbortController();
    const run = runSft({
      training: new Bandit(),
      data,
      batchSize: 1,
      signal: controller.signal,
      onStep: () => controller.abort(),
    });
    await expect(run).rejects.toMatchObject({ code: 'cancelled' });
  });

  it.each([
    ['no data', { data: [] }],
    ['data without weight', { data: [sftDatum({ prompt: [1], completion: [1], weights: [0] })] }],
    ['a batch of none', { batchSize: 0 }],
    ['a learning rate out of range', { learningRate: 0 }],
  ])('refuses %s before any work', async (_name, wrong) => {
    const training = new Bandit();
    const error: unknown = await runSft({ training, data, ...wrong }).catch((reason: unknown) => reason);
    expect(LoopwrightError.isInstance(error) && error.code).toBe('invalid_argument');
    expect(training.calls).toEqual([]);
  });
});
