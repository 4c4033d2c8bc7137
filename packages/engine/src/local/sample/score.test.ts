import { idTensor } from '@loopwright/protocol';
import { expectSameBits, loraAdapterDirectory } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { readAdapter } from '../../formats/adapter.js';
import { tinyBase } from '../testing/tiny-base.js';
import { base, prompt, sampleRequest, tinyEngine } from '../testing/tiny-engine.js';
import type { SamplerEvent } from './events.js';
import { InferenceModel } from './inference-model.js';
import { type Scores, scoreInSlices } from './score.js';
import { Snapshot } from './snapshot.js';

async function score(...[snapshot, ids, options]: Parameters<typeof scoreInSlices>) {
  const slices = scoreInSlices(snapshot, ids, options);
  let count = 1;
  let next = await slices.next();
  for (; next.done !== true; next = await slices.next()) count++;
  return { ...next.value, slices: count };
}

function expectSameScores(actual: Scores, expected: Scores): void {
  expectSameBits(actual.logprobs, expected.logprobs);
  expect(actual.top).toEqual(expected.top);
}

describe('scores of a prompt', () => {
  it.each([
    ['llama-tied', undefined],
    ['llama-untied', 'llama-untied-lm-head'],
    ['llama-tied', 'llama-tied-qv-r4'],
    ['qwen3', undefined],
  ] as const)('have the same bits in one chunk of positions or in many, on %s with adapter %s', async (model, name) => {
    for (const threads of [1, 2]) {
      await using test = await tinyBase(model, { threads });
      await using inference = new InferenceModel(test.base);
      const adapter =
        name === undefined ? undefined : await readAdapter(loraAdapterDirectory(name), { model: test.base.config });
      const snapshot = new Snapshot(inference, adapter);
      for (const length of [2, 17, 130, 511]) {
        for (const topK of [0, 5]) {
          const whole = await score(snapshot, prompt(length), { topK, chunk: 512 });
          expect(whole.slices).toBe(2);
          for (const chunk of [16, 64, 256]) {
            const chunked = await score(snapshot, prompt(length), { topK, chunk });
            expect(chunked.slices).toBe(1 + Math.ceil((length - 1) / chunk));
            expectSameScores(chunked, whole);
          }
        }
      }
    }
  });

  it('are the same for further tokens as for those of the prompt, whatever else is asked for', async () => {
    await using test = await tinyBase('llama-untied', { threads: 1 });
    await using inference = new InferenceModel(test.base);
    const snapshot = new Snapshot(inference, undefined);
    const ids = prompt(40);
    const plain = await score(snapshot, ids, { topK: 3 });
    const next = ids.subarray(1);
    const data = Int32Array.from({ length: 2 * next.length }, (_, i) => (i % 2 === 0 ? next[i / 2]! : -1));
    const asked = await score(snapshot, ids, { topK: 3, chunk: 16, targets: idTensor(data, [next.length, 2]) });
    expectSameScores(asked, plain);
    const column = (of: number) => asked.targets.filter((_, i) => i % 2 === of);
    expectSameBits(column(0), plain.logprobs.subarray(1));
    expect(column(1).every(Number.isNaN)).toBe(true);
  });

  it('leave decoding its time, and logits of 256 positions at most are held', async () => {
    const events: SamplerEvent['type'][] = [];
    await using test = await tinyEngine('llama-tied', { onSampling: ({ type }) => events.push(type) });
    const scoring = Array.from({ length: 4 }, (_, seed) =>
      test.engine.computeLogprobs({ prompt: prompt(500, seed), weights: base }),
    );
    const sampling = test.engine.sample(sampleRequest(prompt(3), { numSamples: 4, maxTokens: 300 }));
    await Promise.all([...scoring, sampling]);
    expect(events.filter((type) => type === 'score-slice')).toHaveLength(4 * (1 + 2));
    const during = events.slice(events.indexOf('score-slice'), events.lastIndexOf('score-slice'));
    expect(during).toContain('decode-step');
  });

  it('can be given up half way, and those behind go on', async () => {
    const controller = new AbortController();
    let slices = 0;
    await using test = await tinyEngine('llama-tied', {
      onSampling: ({ type }) => {
        if (type === 'score-slice' && ++slices === 2) controller.abort(new Error('enough'));
      },
    });
    const request = { prompt: prompt(500), weights: base };
    const [given, behind] = await Promise.allSettled([
      test.engine.computeLogprobs(request, { signal: controller.signal }),
      test.engine.computeLogprobs(request),
    ]);
    expect(given).toMatchObject({ status: 'rejected', reason: { message: 'enough' } });
    expect(behind.status).toBe('fulfilled');
    expect(slices).toBe(2 + 3);
  });
});
