import {
  type Datum,
  floatTensor,
  idTensor,
  type SampleResult,
  type SamplerPath,
  samplerPaths,
  type TargetModule,
  targetModules,
} from '@loopwright/protocol';
import { expectClose, type TinyModel, tinyModels, tolerances } from '@loopwright/testkit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Engine, SampleRequest, SamplerWeights } from '../engine.js';
import {
  adam,
  base,
  crossEntropy,
  datum,
  prompt,
  sampleRequest,
  type TestEngine,
  tinyEngine,
} from './testing/tiny-engine.js';

interface Adapter {
  readonly rank: number;
  readonly alpha: number;
  readonly targetModules: TargetModule[];
  readonly samplerPath: SamplerPath;
  readonly seed: number;
}

const adapter: fc.Arbitrary<Adapter> = fc.record({
  rank: fc.constantFrom(1, 2, 5, 8, 16, 17, 40),
  alpha: fc.constantFrom(1, 16, 64),
  targetModules: fc.subarray([...targetModules], { minLength: 1 }),
  samplerPath: fc.constantFrom(...samplerPaths),
  seed: fc.nat(1000),
});

const ways = [{}, { temperature: 0.5 }, { temperature: 1.7 }, { temperature: 0 }, { topK: 5 }, { topP: 0.9 }] as const;

/** Requests of all lengths and kinds, some with the same prompt, and how many datums go into one pass. */
const batch = fc.record({
  requests: fc.array(
    fc.record({
      length: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 100, max: 300 })),
      promptSeed: fc.nat(2),
      numSamples: fc.integer({ min: 1, max: 4 }),
      maxTokens: fc.integer({ min: 1, max: 50 }),
      way: fc.constantFrom(...ways),
      seed: fc.nat(1000),
    }),
    { minLength: 1, maxLength: 6 },
  ),
  datumsPerPass: fc.integer({ min: 1, max: 12 }),
});

/** A session whose adapter is far from where it began, and its weights as a version. */
async function trained(
  { engine, folder }: TestEngine,
  name: string,
  { seed, ...lora }: Adapter,
): Promise<SamplerWeights> {
  await engine.createSession({ name, baseModel: 'tiny', training: { type: 'lora', ...lora }, seed });
  for (let step = 0; step < 3; step++) {
    await engine.pass(name, { type: 'forward-backward', data: [datum(40, step)], loss: crossEntropy });
    await engine.optimStep(name, { ...adam, learningRate: 0.02 });
  }
  const directory = folder();
  await engine.saveWeights(name, { version: name, directory, merge: false });
  return { type: 'version', id: name, directory };
}

interface Sampled {
  readonly whole: Int32Array;
  readonly promptLength: number;
  readonly logprobs: Float32Array;
}

function sampledOf({ prompt: ids }: SampleRequest, { sequences }: SampleResult): Sampled[] {
  return sequences.map(({ tokens, logprobs }) => ({
    whole: Int32Array.from([...ids, ...tokens]),
    promptLength: ids.length,
    logprobs,
  }));
}

/** Weight on the answer alone, as a loop writes it: datums of one prompt may then share it. */
function rlDatum({ whole, promptLength, logprobs }: Sampled): Datum {
  const N = whole.length - 1;
  const answer = (values: ArrayLike<number>) => {
    const all = new Float32Array(N);
    all.set(values, promptLength - 1);
    return floatTensor(all);
  };
  const ones = new Float32Array(logprobs.length).fill(1);
  return {
    modelInput: whole.slice(0, -1),
    targetTokens: idTensor(whole.slice(1)),
    weights: answer(ones),
    advantages: answer(ones),
    logprobs: answer(logprobs),
  };
}

async function forwardLogprobs(engine: Engine, session: string, data: readonly Datum[], datumsPerPass: number) {
  const logprobs: Float32Array[] = [];
  for (let i = 0; i < data.length; i += datumsPerPass) {
    const part = data.slice(i, i + datumsPerPass);
    const { outputs } = await engine.pass(session, {
      type: 'forward',
      data: part,
      loss: { name: 'importance_sampling' },
    });
    logprobs.push(...outputs.map((output) => output.logprobs));
  }
  return logprobs;
}

describe('at equal weights, trainer, sampler and scoring give every token the same log-probability', () => {
  it.each(tinyModels)('on %s, for adapters, lengths and batches of all kinds', async (model: TinyModel) => {
    await using test = await tinyEngine(model, { threads: 2, maxRows: 9, microBatchTokens: 512 });
    const { engine } = test;
    let sessions = 0;
    let moved = 0;
    await fc.assert(
      fc.asyncProperty(adapter, batch, async (lora, { requests, datumsPerPass }) => {
        const session = `s${sessions++}`;
        const weights = await trained(test, session, lora);
        const asked = requests.map(({ length, promptSeed, way, ...rest }) =>
          sampleRequest(prompt(length, promptSeed), { ...way, ...rest, weights, promptLogprobs: true }),
        );
        const results = await Promise.all(asked.map((request) => engine.sample(request)));
        const sampled = asked.flatMap((request, i) => sampledOf(request, results[i]!));
        const forward = await forwardLogprobs(engine, session, sampled.map(rlDatum), datumsPerPass);
        const scored = await Promise.all(
          sampled.map(({ whole }) => engine.computeLogprobs({ prompt: whole, weights })),
        );
        for (const [i, { promptLength, logprobs }] of sampled.entries()) {
          const [answer, close] = [forward[i]!.subarray(promptLength - 1), tolerances.trainerVersusSampler];
          expectClose(answer, logprobs, close, { label: 'forward against sampled' });
          expectClose(forward[i]!, scored[i]!.logprobs.subarray(1), close, { label: 'forward against scored' });
        }
        for (const [i, { prompt: ids }] of asked.entries()) {
          const mine = sampled.findIndex(({ whole }) => ids.every((id, at) => whole[at] === id));
          const own = results[i]!.promptLogprobs!.subarray(1);
          expectClose(own, scored[mine]!.logprobs.subarray(1, ids.length), tolerances.trainerVersusSampler);
        }
        const plain = await engine.computeLogprobs({ prompt: sampled[0]!.whole, weights: base });
        moved = Math.max(
          moved,
          ...plain.logprobs.subarray(1).map((logprob, at) => Math.abs(logprob - scored[0]!.logprobs[at + 1]!)),
        );
        await engine.closeSession(session);
      }),
      { numRuns: 6, seed: 7 },
    );
    // Adapters that change nothing would prove nothing.
    expect(moved).toBeGreaterThan(0.5);
  });
});
