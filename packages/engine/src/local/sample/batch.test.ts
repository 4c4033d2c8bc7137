import type { SampleResult } from '@loopwright/protocol';
import { loraAdapterDirectory } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { base, prompt, sampleRequest, tinyEngine } from '../testing/tiny-engine.js';

const version = (id: 'llama-tied' | 'llama-tied-qv-r4') =>
  ({ type: 'version', id, directory: loraAdapterDirectory(id) }) as const;

type Asked = Parameters<typeof sampleRequest>[1];
/** Rows of each decoding step while all of these are sampled together, 5 tokens each. */
const stepsOf = (...weights: Asked[]): Promise<number[]> => stepsWithin(64, ...weights);

async function stepsWithin(maxRows: number, ...weights: Asked[]): Promise<number[]> {
  const rows: number[] = [];
  await using test = await tinyEngine('llama-tied', {
    maxRows,
    onSampling: (event) => {
      if (event.type === 'decode-step') rows.push(event.rows);
    },
  });
  // In memory first, so that all requests come in together.
  for (const one of weights) if (one?.weights !== undefined) await test.engine.loadSampler(one.weights);
  const asked = weights.map((one, i) => sampleRequest(prompt(4 + i), { temperature: 0.1, maxTokens: 5, ...one }));
  const results = await Promise.all(asked.map((request) => test.engine.sample(request)));
  for (const { sequences } of results) for (const { tokens } of sequences) expect(tokens).toHaveLength(5);
  return rows;
}

describe('a decoding step', () => {
  it('is shared by the requests of one version, whatever their prompts', async () => {
    const [a, b] = [{ weights: base, numSamples: 4 }, version('llama-tied')];
    expect(await stepsOf(a, { ...a, numSamples: 3 })).toEqual([7, 7, 7, 7, 7]);
    expect(await stepsOf({ weights: b, numSamples: 2 }, { weights: b, numSamples: 6 })).toEqual([8, 8, 8, 8, 8]);
  });

  it('is shared by versions with adapters; rows of the base, which have none, take their own', async () => {
    const rows = await stepsOf(
      { weights: base, numSamples: 4 },
      { weights: version('llama-tied'), numSamples: 2 },
      { weights: version('llama-tied-qv-r4'), numSamples: 1 },
    );
    expect(rows.sort()).toEqual([3, 3, 3, 3, 3, 4, 4, 4, 4, 4]);
  });

  it('gives a version a batch of its own where there is no room for all of its rows beside others', async () => {
    const rows = await stepsWithin(
      64,
      { weights: version('llama-tied'), numSamples: 60 },
      { weights: version('llama-tied-qv-r4'), numSamples: 5 },
    );
    expect(rows.sort((a, b) => a - b)).toEqual([5, 5, 5, 5, 5, 60, 60, 60, 60, 60]);
  });
});

describe('versions that are decoded together', () => {
  const ids = ['llama-tied', 'llama-tied-qv-r4', 'llama-tied-rslora', 'llama-tied-lm-head'] as const;
  const requests = ids.flatMap((id, i) =>
    [0, 1].map((k) =>
      sampleRequest(prompt(5 + 7 * i + k, i), {
        weights: { type: 'version', id, directory: loraAdapterDirectory(id) },
        numSamples: 1 + ((i + k) % 3),
        maxTokens: 6 + 5 * ((i + 2 * k) % 4),
        seed: 10 * i + k,
        ...(k === 1 ? { temperature: 0 } : {}),
      }),
    ),
  );
  const flat = ({ sequences }: SampleResult) => sequences.map(({ tokens, logprobs }) => [[...tokens], [...logprobs]]);

  it('have the bits that each has alone, whatever their ranks and targets, as they come and go', async () => {
    await using calm = await tinyEngine('llama-tied', { threads: 2 });
    const alone: unknown[] = [];
    for (const request of requests) alone.push(flat(await calm.engine.sample(request)));

    const versions: number[] = [];
    await using test = await tinyEngine('llama-tied', {
      threads: 2,
      onSampling: (event) => {
        if (event.type === 'decode-step') versions.push(event.versions);
      },
    });
    for (const { weights } of requests) if (weights.type === 'version') await test.engine.loadSampler(weights);
    const together = await Promise.all(requests.map((request) => test.engine.sample(request)));
    expect(together.map(flat)).toEqual(alone);
    expect(Math.max(...versions)).toBe(ids.length);
    // Slots are free again, and are taken by others in another order.
    const reversed = await Promise.all([...requests].reverse().map((request) => test.engine.sample(request)));
    expect(reversed.reverse().map(flat)).toEqual(alone);
    // One alone, by the program that takes several.
    expect(flat(await test.engine.sample(requests[2]!))).toEqual(alone[2]);
  });
});
