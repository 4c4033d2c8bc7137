/** Works of the engine alone, in this process: forward + backward, decoding, generation. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { LocalEngine } from '@loopwright/engine/local';
import { type Datum, defaultTargetModules, floatTensor, idTensor } from '@loopwright/protocol';
import { emit, median, peakMemoryMb, type Settings, timed } from './report.js';

async function withEngine(settings: Settings, work: (engine: LocalEngine) => Promise<void>): Promise<void> {
  const cacheDirectory = await mkdtemp(path.join(tmpdir(), 'loopwright-bench-'));
  try {
    const engine = await LocalEngine.load(
      { id: 'bench', directory: settings.modelDirectory },
      { cacheDirectory, threads: settings.threads, lowMemory: settings.lowMemory },
    );
    await work(engine);
    await engine[Symbol.asyncDispose]();
  } finally {
    await rm(cacheDirectory, { recursive: true, force: true });
  }
}

/** Ids that repeat nowhere near, within the vocabulary. */
function ids(length: number, salt: number, vocabSize: number): Int32Array {
  return Int32Array.from({ length }, (_, i) => 3 + ((i * 7919 + salt * 104_729) % (vocabSize - 200)));
}

/** LoRA r=32, alpha 64 on every linear layer; B sequences of S tokens, every token a target. */
export function train(settings: Settings, B: number, S: number): Promise<void> {
  return withEngine(settings, async (engine) => {
    await engine.createSession({
      name: 'bench',
      baseModel: 'bench',
      training: { type: 'lora', rank: 32, alpha: 64, targetModules: defaultTargetModules },
      seed: 1,
    });
    const data: Datum[] = Array.from({ length: B }, (_, b) => {
      const sequence = ids(S + 1, b, engine.model.vocabSize);
      return {
        modelInput: sequence.slice(0, S),
        targetTokens: idTensor(sequence.slice(1)),
        weights: floatTensor(new Float32Array(S).fill(1 / (B * S))),
      };
    });
    const passes = await timed(settings, async () => {
      await engine.pass('bench', { type: 'forward-backward', data, loss: { name: 'cross_entropy' } });
    });
    const steps = await timed({ ...settings, repeats: 2 }, async () => {
      await engine.optimStep('bench', {
        learningRate: 1e-4,
        beta1: 0.9,
        beta2: 0.999,
        eps: 1e-8,
        weightDecay: 0.01,
        gradClipNorm: 0,
        loraPlusLrRatio: 1,
      });
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
  const { prompt, newTokens } = settings;
  return withEngine(settings, async (engine) => {
    let tokens = 0;
    // The engine keeps prompts that it prefilled: each run has others.
    let runs = 0;
    const run = (maxTokens: number) => async () => {
      const salt = B * runs++;
      const results = await Promise.all(
        Array.from({ length: B }, (_, b) =>
          engine.sample({
            weights: { type: 'base' },
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
        median: count / median(taken),
        prefill_tok_s: (B * prompt) / Math.min(...first),
        seconds: Math.min(...whole),
        peak_rss_mb: peakMemoryMb(),
      },
      settings,
    );
  });
}
