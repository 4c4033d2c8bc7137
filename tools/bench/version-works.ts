/** What it is worth that versions share decoding steps. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { SamplerWeights } from '@loopwright/engine';
import type { LocalEngine } from '@loopwright/engine/local';
import { defaultTargetModules } from '@loopwright/protocol';
import { ids, withEngine } from './bench-engine.js';
import { emit, median, type Settings, seconds } from './report.js';

const lora = { type: 'lora', rank: 32, alpha: 64, targetModules: defaultTargetModules } as const;

/**
 * `count` versions of LoRA r=32 with `rows` samples each, all at once, against one version after the other. Each way has an engine of its
 * own, since one that decoded several together keeps the program for that; runs alternate.
 */
export async function versions(settings: Settings, count: number, rows: number): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'loopwright-versions-'));
  try {
    await withEngine(settings, (apart) =>
      withEngine(settings, async (together) => {
        const weights = await save(apart, folder, count);
        const sample = (engine: LocalEngine, version: number) => answers(engine, settings, { version, weights, rows });
        const ways = {
          apart: async () => {
            for (let version = 0; version < count; version++) await sample(apart, version);
          },
          together: async () => {
            await Promise.all(weights.map((_, version) => sample(together, version)));
          },
        };
        await ways.apart();
        await ways.together();
        const taken = { apart: [] as number[], together: [] as number[] };
        for (let repeat = 0; repeat < settings.repeats; repeat++) {
          for (const way of ['apart', 'together'] as const) {
            const start = seconds(settings.clock);
            await ways[way]();
            taken[way].push(seconds(settings.clock) - start);
          }
        }
        const ratios = taken.apart.map((time, i) => time / taken.together[i]!);
        emit(
          {
            work: `${count} versions x ${rows} rows p${settings.prompt} n${settings.newTokens}, together`,
            value: Math.max(...ratios),
            unit: 'times as fast as one after the other',
            median: median(ratios),
            worst: Math.min(...ratios),
            apart_s: median(taken.apart),
            together_s: median(taken.together),
          },
          settings,
        );
      }),
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function save(engine: LocalEngine, folder: string, count: number): Promise<SamplerWeights[]> {
  const weights: SamplerWeights[] = [];
  for (let seed = 1; seed <= count; seed++) {
    const name = `session-${seed}`;
    const directory = path.join(folder, name);
    await engine.createSession({ name, baseModel: 'bench', training: lora, seed });
    await engine.saveWeights(name, { version: `bench/${seed}`, directory, merge: false });
    await engine.closeSession(name);
    weights.push({ type: 'version', id: `bench/${seed}`, directory });
  }
  return weights;
}

async function answers(
  engine: LocalEngine,
  { prompt, newTokens }: Settings,
  { version, weights, rows }: { version: number; weights: readonly SamplerWeights[]; rows: number },
): Promise<void> {
  await engine.sample({
    weights: weights[version]!,
    prompt: ids(prompt, version, engine.model.vocabSize),
    numSamples: rows,
    params: { maxTokens: newTokens, temperature: 1, topK: -1, topP: 1, seed: version, stop: [], stopTokenIds: [] },
    promptLogprobs: false,
    topkPromptLogprobs: 0,
  });
}
