import { loraAdapterDirectory } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { base, prompt, sampleRequest, tinyEngine } from '../testing/tiny-engine.js';

const version = (id: 'llama-tied' | 'llama-tied-qv-r4') =>
  ({ type: 'version', id, directory: loraAdapterDirectory(id) }) as const;

/** Rows of each decoding step while all of these are sampled together, 5 tokens each. */
async function stepsOf(...weights: Parameters<typeof sampleRequest>[1][]): Promise<number[]> {
  const rows: number[] = [];
  await using test = await tinyEngine('llama-tied', {
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

  it('is not shared by versions: adapters are inputs of the whole step, and each version takes its own', async () => {
    const rows = await stepsOf(
      { weights: base, numSamples: 4 },
      { weights: version('llama-tied'), numSamples: 2 },
      { weights: version('llama-tied-qv-r4'), numSamples: 1 },
    );
    expect(rows.sort()).toEqual([1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4]);
  });
});
