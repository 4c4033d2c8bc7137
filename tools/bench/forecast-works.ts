/** What preflight forecasts of a run, and what the run then takes: three settings on the bundled model. */
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { predictModel } from '@loopwright/engine/local';
import { defaultTargetModules } from '@loopwright/protocol';
import { tinyModel } from '@loopwright/tiny';
import {
  arithmetic,
  connect,
  defineTask,
  openRun,
  type PreflightReport,
  preflight,
  readRun,
  runGrpo,
} from 'loopwright';
import { emit, enginePeakBytes } from './report.js';

const environment = arithmetic();
const settings = {
  'the recipe arithmetic': { groupsPerStep: 32, groupSize: 8, maxTokens: 8, steps: 40, learningRate: 1e-3, rank: 16 },
  'the demo': { groupsPerStep: 32, groupSize: 8, maxTokens: 8, steps: 50, learningRate: 8e-4, rank: 16 },
  'small steps': { groupsPerStep: 8, groupSize: 16, maxTokens: 16, steps: 60, learningRate: 3e-4, rank: 64 },
} as const;
type Settings = (typeof settings)[keyof typeof settings];

/** Wall seconds of the steps, tokens of the ledger as the run folder has them, the engine's peak of resident memory. */
export async function forecast(seed: number): Promise<void> {
  const directory = path.join(tmpdir(), `loopwright-forecast-${process.pid}`);
  try {
    for (const [name, each] of Object.entries(settings)) {
      const { forecast: said, passRate } = await foretell(name, each, { directory, seed });
      const { steps, usage, peakBytes } = await take(name, each, { directory, seed });
      const sum = (metric: string) => steps.reduce((total, { metrics }) => total + (metrics[metric] ?? 0), 0);
      const actual = {
        prefill: usage.prefillTokens,
        sampled: usage.sampleTokens,
        trained: usage.trainingTokens,
        seconds: sum('time/step_ms') / 1000,
        bytes: peakBytes,
      };
      const { prefill, sampled, trained } = said.tokens;
      const foretold = { prefill, sampled, trained, seconds: said.seconds, bytes: said.memory };
      emit(
        {
          work: `forecast of ${name}`,
          ...{ value: actual.seconds, unit: 's' },
          pass_rate: passRate.share,
          foretold,
          actual,
        },
        { threads: 2, clock: 'wall' },
      );
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

interface Place {
  readonly directory: string;
  readonly seed: number;
}

async function foretell(name: string, each: Settings, { directory, seed }: Place): Promise<PreflightReport> {
  const train = environment.problems({ split: 'rl', count: 3000, seed });
  const heldOut = environment.problems({ split: 'held-out', count: 200, seed });
  const task = defineTask({ name, environment, train, heldOut, settings: each });
  await using service = await connect({ dataDir: path.join(directory, 'before'), threads: 2 });
  const { rank } = each;
  const sampler = await service.createSamplingClient({ baseModel: 'loopwright-tiny' });
  const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank, seed });
  const lora = { type: 'lora', rank, alpha: rank, targetModules: defaultTargetModules } as const;
  const { maxMemoryBytes: limit, runBytes: bytes } = await predictModel(tinyModel.directory, { training: lora });
  const tokenizer = await sampler.getTokenizer();
  const { report } = await preflight(task, { sampler, tokenizer, training, memory: { limit, bytes }, seed });
  return report;
}

async function take(name: string, each: Settings, { directory, seed }: Place) {
  const { groupSize: samplesPerGroup, rank, ...options } = each;
  await using service = await connect({ dataDir: path.join(directory, 'run'), threads: 2 });
  const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank, seed });
  const problems = environment.problems({ split: 'rl', count: 3000, seed });
  await using run = await openRun({
    folder: path.join(directory, name.replaceAll(' ', '-')),
    ...{ config: { ...each }, seeds: { seed }, usage: () => service.usage() },
  });
  const { onStep } = run;
  await runGrpo({ ...{ training, environment, problems, samplesPerGroup, ...options, seed, onStep, guard: false } });
  const peakBytes = await enginePeakBytes();
  await run.finish();
  const { steps, record } = await readRun(run.folder);
  return { steps, usage: record.usage![0]!, peakBytes };
}
