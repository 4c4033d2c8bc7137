/** Works of the whole product: client, HTTP, log, scheduler and the engine in its process. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { centerRewards, connect, rlDatum } from 'loopwright';
import { emit, enginePeakBytes, median, peakMemoryMb, type Settings } from './report.js';

const groups = 8;
const samples = 8;

async function withDataDirectory(work: (dataDir: string) => Promise<void>): Promise<void> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'loopwright-bench-'));
  try {
    await work(dataDir);
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** One GRPO step: 8 prompts × 8 samples, 64 + 64 tokens, LoRA r=32. Wall seconds: the work is spread over processes. */
export function grpo(settings: Settings): Promise<void> {
  const { prompt: promptLength, newTokens, modelDirectory, repeats } = settings;
  return withDataDirectory(async (dataDir) => {
    await using service = await connect({ dataDir });
    const training = await service.createLoraTrainingClient({
      baseModel: modelDirectory,
      rank: 32,
      alpha: 64,
      seed: 1,
    });
    // Client, HTTP, log, registry and scheduler live in this process, the engine in its own.
    const steps: { total: number; sampled: number; trained: number; api: number }[] = [];
    for (let step = 0; step <= repeats; step++) {
      const begin = performance.now();
      const cpu = process.cpuUsage();
      const sampler = await training.saveWeightsAndGetSamplingClient();
      const rollouts = await Promise.all(
        Array.from({ length: groups }, async (_, g) => {
          const prompt = Array.from(
            { length: promptLength },
            (_, i) => 3 + ((i * 7919 + (step * groups + g) * 104_729) % 40_000),
          );
          const { sequences } = await sampler.sample(prompt, {
            numSamples: samples,
            maxTokens: newTokens,
            seed: step * groups + g,
          });
          return { prompt, sequences, rewards: sequences.map(({ tokens }) => new Set(tokens).size % 7) };
        }),
      );
      const sampled = performance.now();
      const advantages = centerRewards(rollouts.map(({ rewards }) => rewards));
      const data = rollouts.flatMap(({ prompt, sequences }, g) =>
        sequences.map((sequence, j) => rlDatum({ prompt, sequence, advantage: advantages[g]![j]! })),
      );
      await Promise.all([
        training.forwardBackward(data, 'importance_sampling'),
        training.optimStep({ learningRate: 1e-5 }),
      ]);
      const end = performance.now();
      const { user, system } = process.cpuUsage(cpu);
      if (step > 0) {
        const [total, api] = [(end - begin) / 1000, (user + system) / 1e6];
        steps.push({ total, sampled: (sampled - begin) / 1000, trained: (end - sampled) / 1000, api });
      }
    }
    const best = steps.reduce((a, b) => (a.total <= b.total ? a : b));
    emit(
      {
        work: `grpo step ${groups}x${samples} p${promptLength} n${newTokens}`,
        value: best.total,
        unit: 's/step',
        median: median(steps.map(({ total }) => total)),
        generate_score_s: best.sampled,
        train_s: best.trained,
        api_cpu_s: best.api,
        api_share: best.api / best.total,
        peak_rss_mb: peakMemoryMb(),
        engine_peak_rss_mb: (await enginePeakBytes()) / 2 ** 20,
      },
      { ...settings, clock: 'wall' },
    );
  });
}

/** From `connect()` to the first sampled token of the bundled model and of the one in MODEL_DIR: in a new data directory, and in one that knows the model. */
export function start(settings: Settings): Promise<void> {
  return withDataDirectory(async (dataDir) => {
    const taken = async (folder: string, baseModel: string): Promise<number> => {
      const begin = performance.now();
      await using service = await connect({ dataDir: path.join(dataDir, folder) });
      const sampler = await service.createSamplingClient({ baseModel });
      await sampler.sample([1, 2, 3], { maxTokens: 1 });
      return (performance.now() - begin) / 1000;
    };
    for (const baseModel of ['loopwright-tiny', settings.modelDirectory]) {
      const name = path.basename(baseModel);
      const times: { first: number; again: number }[] = [];
      for (let i = 0; i < settings.repeats; i++) {
        const folder = `${name}-${i}`;
        times.push({ first: await taken(folder, baseModel), again: await taken(folder, baseModel) });
      }
      for (const when of ['first', 'again'] as const) {
        const seconds = times.map((time) => time[when]);
        const work = `connect to first token, ${name}, ${when === 'first' ? 'new data directory' : 'known model'}`;
        emit({ work, value: Math.min(...seconds), unit: 's', median: median(seconds) }, { ...settings, clock: 'wall' });
      }
    }
  });
}
