import { expectClose, expectSameBits, tolerances } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import type { RecomputePlan } from '../../engine.js';
import { formOf, paddedLength } from '../models/sequence-form.js';
import { tinyBase } from '../testing/tiny-base.js';
import { crossEntropy, datum } from '../testing/tiny-engine.js';
import { adapterSession, forwardBackward, newSession } from '../testing/training.js';

const never = Number.MAX_SAFE_INTEGER;
const plans = {
  attention: { attentionOver: 0, layersOver: never },
  layers: { attentionOver: never, layersOver: 0 },
  both: { attentionOver: 0, layersOver: 0 },
} satisfies Record<string, RecomputePlan>;

describe('a pass that computes again what it did not keep', () => {
  for (const [name, recompute] of Object.entries(plans))
    it(`gives the numbers of one that keeps all: ${name}`, async () => {
      await using model = await tinyBase('qwen3');
      await using window = await tinyBase('gemma3');
      const data = [datum(60, 1), datum(33, 2), datum(41, 3)];
      for (const make of [
        (plan: object) => adapterSession(model.base, 'qwen3', plan),
        async (plan: object) => newSession(window.base, { training: { type: 'full' }, plan }),
      ]) {
        const run = async (plan: object) => {
          const session = await make(plan);
          const result = await forwardBackward(session, data, crossEntropy);
          return { result, gradient: session.gradient! };
        };
        const [kept, again] = [
          await run({ recompute: { attentionOver: never, layersOver: never } }),
          await run({ recompute }),
        ];
        kept.result.outputs.forEach(({ logprobs }, i) => {
          expectClose(again.result.outputs[i]!.logprobs, logprobs, tolerances.tinyLogprobs);
        });
        expect(again.gradient.size).toBe(kept.gradient.size);
        for (const [key, values] of kept.gradient)
          expectClose(again.gradient.get(key)!, values, tolerances.gradient, { label: key });
      }
    });

  it('gives the same bits each time', async () => {
    await using model = await tinyBase('qwen3');
    const run = async () => {
      const session = await adapterSession(model.base, 'qwen3', { recompute: plans.both });
      await forwardBackward(session, [datum(60, 1), datum(33, 2)], crossEntropy);
      return session.gradient!;
    };
    const [first, second] = [await run(), await run()];
    for (const [name, values] of first) expectSameBits(second.get(name)!, values);
  });
});

describe('the form of a micro-batch', () => {
  const recompute = { attentionOver: 512, layersOver: 4096 };
  const form = (rows: number, length: number) => formOf(recompute, { rows, length });

  it('goes by the length of rows and the tokens in all', () => {
    expect(form(4, 512)).toEqual({ blocks: 4, attention: false, layers: false });
    expect(form(1, 528)).toEqual({ blocks: 4, attention: true, layers: false });
    expect(form(9, 512)).toEqual({ blocks: 4, attention: false, layers: true });
    expect(form(1, 4112)).toEqual({ blocks: 16, attention: true, layers: true });
  });

  it('has blocks of 512 queries at most, up to 16 of them, which lengths are whole multiples of', () => {
    expect([2048, 2064, 4096, 8192, 65_536].map((length) => form(1, length).blocks)).toEqual([4, 8, 8, 16, 16]);
    for (let tokens = 1; tokens < 9000; tokens += 37)
      for (const multiple of [1, 4, 16]) {
        const length = paddedLength(tokens, multiple, recompute);
        expect(length % multiple).toBe(0);
        expect(length % form(1, length).blocks).toBe(0);
        expect(length - tokens).toBeLessThan(16);
      }
  });

  it('is that of plans from before where they say nothing', () => {
    expect(formOf(undefined, { rows: 1, length: 8192 })).toEqual({ blocks: 4, attention: false, layers: false });
    expect(paddedLength(2050, 4)).toBe(2052);
  });
});
