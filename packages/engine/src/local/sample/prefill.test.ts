import type { SampleResult } from '@loopwright/protocol';
import { expectSameBits, loraAdapterDirectory } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import type { SampleRequest } from '../../engine.js';
import { readAdapter } from '../../formats/adapter.js';
import { tinyBase } from '../testing/tiny-base.js';
import { prompt, sampleRequest, tinyEngine } from '../testing/tiny-engine.js';
import type { SamplerEvent } from './events.js';
import { Prefills } from './prefill.js';
import { keptVersions, Snapshots } from './snapshots.js';

/** Prompts of an engine, in the order in which rows joined. */
async function countingEngine(options: { readonly maxRows?: number; readonly maxCacheBytes?: number } = {}) {
  const events: SamplerEvent[] = [];
  const test = await tinyEngine('llama-tied', { ...options, onSampling: (event) => events.push(event) });
  const prefills = () => events.flatMap((event) => (event.type === 'prompt-prefill' ? [event] : []));
  return { ...test, computed: () => prefills().filter(({ isReused }) => !isReused).length, prefills };
}

function expectSame(actual: SampleResult, expected: SampleResult): void {
  expect(actual.sequences.map(({ tokens }) => [...tokens])).toEqual(
    expected.sequences.map(({ tokens }) => [...tokens]),
  );
  expected.sequences.forEach(({ logprobs }, i) => {
    expectSameBits(actual.sequences[i]!.logprobs, logprobs);
  });
}

/** What a fresh engine gives, where nothing was kept. */
async function fresh(request: SampleRequest): Promise<SampleResult> {
  await using test = await tinyEngine('llama-tied');
  return await test.engine.sample(request);
}

const adapted = { type: 'version', id: 'v', directory: loraAdapterDirectory('llama-tied') } as const;

describe('a prompt is prefilled once', () => {
  it('for a request of more rows than fit at a time, to the same bits', async () => {
    await using test = await countingEngine({ maxRows: 7 });
    const request = sampleRequest(prompt(40), { numSamples: 40, maxTokens: 12 });
    expectSame(await test.engine.sample(request), await fresh(request));
    expect(test.computed()).toBe(1);
    expect(test.prefills().length).toBeGreaterThan(5);
    expect(new Set(test.prefills().map(({ tokens }) => tokens))).toEqual(new Set([39]));
  });

  it('for requests of one group, made together or later, whatever their last token', async () => {
    await using test = await countingEngine();
    const requests = Array.from({ length: 8 }, (_, seed) => sampleRequest(prompt(30), { seed }));
    const results = await Promise.all(requests.map((request) => test.engine.sample(request)));
    expect(test.prefills()).toEqual([{ type: 'prompt-prefill', tokens: 29, isReused: false }]);
    for (const i of [0, 7]) expectSame(results[i]!, await fresh(requests[i]!));
    const later = sampleRequest([...prompt(30).subarray(0, 29), 5]);
    expectSame(await test.engine.sample(later), await fresh(later));
    expect(test.computed()).toBe(1);
  });

  it('for each version, and for each prompt', async () => {
    await using test = await countingEngine();
    const request = sampleRequest(prompt(30));
    await test.engine.sample(request);
    const changed = await test.engine.sample({ ...request, weights: adapted });
    expectSame(changed, await fresh({ ...request, weights: adapted }));
    await test.engine.sample(sampleRequest(prompt(30).subarray(1)));
    expect(test.computed()).toBe(3);
    for (const weights of [request.weights, adapted]) await test.engine.sample({ ...request, weights });
    expect(test.computed()).toBe(3);
  });
});

describe('kept prompts', () => {
  it('are bounded in bytes, the least recently used let go first', async () => {
    // Keys and values of 32 positions: 2 layers, 2 heads of width 16. An eighth of the limit holds two prompts.
    const bytes = 2 * 2 * 2 * 16 * 4 * 32;
    await using test = await countingEngine({ maxCacheBytes: 8 * 2 * bytes });
    const sample = (seed: number) => test.engine.sample(sampleRequest(prompt(33, seed)));
    for (const seed of [1, 2, 1, 3]) await sample(seed);
    expect(test.computed()).toBe(3);
    await sample(1);
    expect(test.computed()).toBe(3);
    await sample(2);
    expect(test.computed()).toBe(4);
  });

  it('are one at least, so that a long prompt serves all its rows', async () => {
    await using test = await countingEngine({ maxCacheBytes: 1 });
    await test.engine.sample(sampleRequest(prompt(100), { numSamples: 5, maxTokens: 4 }));
    expect([test.computed(), test.prefills().length]).toEqual([1, 5]);
  });

  it('go with their version, which nobody can ask for again as it was', async () => {
    await using test = await tinyBase('llama-tied');
    const prefills = new Prefills({ maxBytes: 1e9 });
    await using snapshots = new Snapshots(test.base, {
      cacheDirectory: 'none',
      betweenSlices: (work) => work(),
      onForgotten: (snapshot) => prefills.forget(snapshot),
    });
    const adapter = await readAdapter(loraAdapterDirectory('llama-tied'), { model: test.base.config });
    snapshots.remember('first', adapter);
    const version = { type: 'version', id: 'first', directory: 'none' } as const;
    const key = await snapshots.use(version, async (snapshot) => {
      await prefills.get(snapshot, prompt(5));
      return prefills.key(snapshot, prompt(5));
    });
    for (let number = 1; number < keptVersions.adapter; number++) snapshots.remember(String(number), adapter);
    expect(prefills.has(key)).toBe(true);
    snapshots.remember('one more', adapter);
    await new Promise((resolve) => setImmediate(resolve));
    expect(prefills.has(key)).toBe(false);
  });
});
