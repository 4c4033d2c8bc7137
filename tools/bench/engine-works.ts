/** Works of the engine alone, in this process: forward + backward, decoding, generation. */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { SamplerWeights } from '@loopwright/engine';
import type { LocalEngine } from '@loopwright/engine/local';
import { defaultTargetModules, type SamplerPath } from '@loopwright/protocol';
import { adam, ids, trainingData, withEngine } from './bench-engine.js';
import { emit, median, peakMemoryMb, type Settings, timed } from './report.js';

const lora = { type: 'lora', rank: 32, alpha: 64, targetModules: defaultTargetModules } as const;

/** A version to sample from, of an adapter that an optimizer step has moved. */
async function saveVersion(engine: LocalEngine, samplerPath: SamplerPath, folder: string): Promise<SamplerWeights> {
  await engine.createSession({ name: 'bench', baseModel: 'bench', training: { ...lora, samplerPath }, seed: 1 });
  await engine.pass('bench', {
    type: 'forward-backward',
    data: trainingData(engine, 1, 64),
    loss: { name: 'cross_entropy' },
  });
  await engine.optimStep('bench', adam);
  const version = { id: 'bench/1', directory: path.join(folder, 'version') };
  await mkdir(version.directory);
  await engine.saveWeights('bench', { version: version.id, directory: version.directory, merge: false });
  await engine.closeSession('bench');
  return { type: 'version', ...version };
}

/** LoRA r=32, alpha 64 on every linear layer; B sequences of S tokens, every token a target. */
export function train(settings: Settings, B: number, S: number): Promise<void> {
  return withEngine(settings, async (engine) => {
    await engine.createSession({ name: 'bench', baseModel: 'bench', training: lora, seed: 1 });
    const data = trainingData(engine, B, S);
    const passes = await timed(settings, async () => {
      await engine.pass('bench', { type: 'forward-backward', data, loss: { name: 'cross_entropy' } });
    });
    const steps = await timed({ ...settings, repeats: 2 }, async () => {
      await engine.optimStep('bench', adam);
    });
    const best = Math.min(...passes);
    emit(
      {
        work: `lora train fwd+bwd ${B}x${S}`,
        value: (B * S) / best,
        unit: 'tok/s',
        median: (B * S) / median(passes),
        seconds: best,
        adamw_s: Math.min(...steps),
        peak_rss_mb: peakMemoryMb(),
      },
      settings,
    );
  });
}

/** B sequences from B different prompts; prefill apart by a run of one new token. */
export function generate(settings: Settings, B: number, { prefill }: { prefill: 'apart' | 'included' }): Promise<void> {
  const { prompt, newTokens, adapter, samplerPrecision: precision } = settings;
  return withEngine(settings, async (engine, folder) => {
    const weights = adapter === 'none' ? ({ type: 'base' } as const) : await saveVersion(engine, adapter, folder);
    let tokens = 0;
    // The engine keeps prompts that it prefilled: each run has others.
    let runs = 0;
    const run = (maxTokens: number) => async () => {
      const salt = B * runs++;
      const results = await Promise.all(
        Array.from({ length: B }, (_, b) =>
          engine.sample({
            weights,
            prompt: ids(prompt, salt + b, engine.model.vocabSize),
            numSamples: 1,
            params: { maxTokens, temperature: 1, topK: -1, topP: 1, seed: b, stop: [], stopTokenIds: [] },
            promptLogprobs: false,
            topkPromptLogprobs: 0,
          }),
        ),
      );
      tokens = results.reduce((sum, { sequences }) => sum + sequences.reduce((n, s) => n + s.tokens.length, 0), 0);
    };
    const first = await timed(settings, run(1));
    const whole = await timed(settings, run(newTokens));
    const count = prefill === 'apart' ? tokens - B : tokens;
    const taken = prefill === 'apart' ? whole.map((second) => second - Math.min(...first)) : whole;
    emit(
      {
        work: `${prefill === 'apart' ? 'decode' : 'generate'} b${B} p${prompt} n${newTokens}`,
        value: count / Math.min(...taken),
        unit: 'tok/s',
        adapter,
        precision,
        ...(engine.precisionEffect === undefined ? {} : { effect: engine.precisionEffect }),
        median: count / median(taken),
        prefill_tok_s: (B * prompt) / Math.min(...first),
        seconds: Math.min(...whole),
        peak_rss_mb: peakMemoryMb(),
      },
      settings,
    );
  });
}
