/** Works of sessions: what snapshots cost, and what many sessions hold. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout } from 'node:timers/promises';
import { openModel } from '@loopwright/engine';
import { type LocalEngine, type LocalEngineOptions, sessionBytes } from '@loopwright/engine/local';
import { defaultTargetModules, type TargetModule } from '@loopwright/protocol';
import { adam, ids, trainingData, withEngine } from './bench-engine.js';
import { emit, median, type Settings } from './report.js';

const lora = { type: 'lora', rank: 32, alpha: 64, targetModules: defaultTargetModules } as const;

/**
 * Snapshots of a LoRA r=32 session with weights, moments and gradient: seconds alone and while 8 rows are decoded, the longest time
 * that nothing else could run, and how much work is lost when one is taken every `everySeconds`.
 */
export async function snapshot(settings: Settings, everySeconds: number): Promise<void> {
  const directory = await mkdtemp(path.join(tmpdir(), 'loopwright-snapshot-'));
  try {
    await withEngine(settings, async (engine) => {
      await engine.createSession({ name: 'bench', baseModel: 'bench', training: lora, seed: 1 });
      const pass = async () => {
        const data = trainingData(engine, 4, 64);
        await engine.pass('bench', { type: 'forward-backward', data, loss: { name: 'cross_entropy' } });
      };
      await pass();
      await engine.optimStep('bench', adam);
      await pass();
      const take = () => timeOf(() => engine.snapshot('bench', { directory }));
      const decode = (salt: number) =>
        Promise.all(
          Array.from({ length: 8 }, (_, b) =>
            engine.sample({
              weights: { type: 'base' },
              prompt: ids(settings.prompt, 8 * salt + b, engine.model.vocabSize),
              numSamples: 1,
              params: { maxTokens: 96, temperature: 1, topK: -1, topP: 1, seed: b, stop: [], stopTokenIds: [] },
              promptLogprobs: false,
              topkPromptLogprobs: 0,
            }),
          ),
        );
      const { sizeBytes } = await engine.snapshot('bench', { directory });
      const delay = monitorEventLoopDelay({ resolution: 1 });
      delay.enable();
      const alone: number[] = [];
      for (let i = 0; i < settings.repeats; i++) alone.push(await take());
      delay.disable();
      const longestMs = delay.max / 1e6;

      await decode(0);
      const quiet: number[] = [];
      const disturbed: number[] = [];
      const meanwhile: number[] = [];
      for (let i = 0; i < settings.repeats; i++) {
        quiet.push(await timeOf(() => decode(1 + 2 * i)));
        const taking = { seconds: 0 };
        disturbed.push(
          await timeOf(async () => {
            const decoding = decode(2 + 2 * i);
            taking.seconds = await take();
            await decoding;
          }),
        );
        meanwhile.push(taking.seconds);
      }
      // A pass that follows at once runs while the file is written.
      const passes: number[] = [];
      const passesWithSnapshot: number[] = [];
      for (let i = 0; i < settings.repeats; i++) {
        passes.push(await timeOf(pass));
        const taking = { done: Promise.resolve(0) };
        passesWithSnapshot.push(
          await timeOf(async () => {
            taking.done = take();
            await pass();
          }),
        );
        await taking.done;
      }
      const lost = (few: readonly number[], more: readonly number[]) => median(more) - median(few);
      emit(
        {
          work: 'session snapshot',
          value: median(alone),
          unit: 's',
          best: Math.min(...alone),
          worst: Math.max(...alone),
          size_mb: sizeBytes / 1e6,
          longest_hold_ms: longestMs,
          while_decoding_s: median(meanwhile),
          decode_lost_s: lost(quiet, disturbed),
          decode_lost_percent: (100 * lost(quiet, disturbed)) / everySeconds,
          pass_lost_s: lost(passes, passesWithSnapshot),
          pass_lost_percent: (100 * lost(passes, passesWithSnapshot)) / everySeconds,
          every_s: everySeconds,
        },
        settings,
      );
    });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

/** Target modules of the sessions, in turn: the usual sets. */
const targetSets: readonly (readonly TargetModule[])[] = [
  defaultTargetModules,
  ['q_proj', 'v_proj'],
  ['q_proj', 'k_proj', 'v_proj', 'o_proj'],
  ['gate_proj', 'up_proj', 'down_proj'],
];
const ranks = [4, 8, 16, 32];

/**
 * Many LoRA sessions of different ranks and targets, trained a small step each: the resident set by what trained arrays, moments
 * and pending gradient come to. Each leaves a gradient pending. Then all are put on the disk, and one comes back.
 */
export async function sessions(settings: Settings, count: number): Promise<void> {
  let isOut = () => {};
  const timers = new Set<() => void>();
  let onDisk = 0;
  const options: Partial<LocalEngineOptions> = {
    after: (_, action) => {
      const once = () => {
        timers.delete(once);
        action();
      };
      timers.add(once);
      return () => timers.delete(once);
    },
    onSwap: ({ type }) => {
      if (type === 'swap-out' && ++onDisk === count) isOut();
    },
  };
  const work = async (engine: LocalEngine) => {
    await using model = await openModel(settings.modelDirectory);
    const { config } = model;
    let predictedMb = 0;
    const line = (what: string, facts: Readonly<Record<string, unknown>> = {}) =>
      emit({ work: `sessions ${what}`, value: residentMb(), unit: 'MB', ...facts }, settings);
    line('0');
    for (let i = 0; i < count; i++) {
      const training = { type: 'lora', ...trainingOf(i) } as const;
      const name = `s${i}`;
      await engine.createSession({ name, baseModel: 'bench', training, seed: i });
      const data = trainingData(engine, 1, 16);
      const pass = () => engine.pass(name, { type: 'forward-backward', data, loss: { name: 'cross_entropy' } });
      await pass();
      await engine.optimStep(name, adam);
      await pass();
      predictedMb += sessionBytes(config, training) / 1e6;
      line(`${i + 1}`, { predicted_mb: predictedMb });
    }
    const allGone = new Promise<void>((resolve) => {
      isOut = resolve;
    });
    for (const action of [...timers]) action();
    await allGone;
    // What they held is collected a moment later.
    for (const action of [...timers]) action();
    await setTimeout(1000);
    line('on the disk', { held_by_arrays_mb: process.memoryUsage().arrayBuffers / 1e6 });
    const seconds = await timeOf(() => engine.clearGradient('s0'));
    line('one back', { seconds });
  };
  await withEngine(settings, work, options);
}

function trainingOf(i: number) {
  const rank = ranks[Math.floor(i / targetSets.length) % ranks.length]!;
  return { rank, alpha: 2 * rank, targetModules: targetSets[i % targetSets.length]! };
}

function residentMb(): number {
  return process.memoryUsage().rss / 1e6;
}
