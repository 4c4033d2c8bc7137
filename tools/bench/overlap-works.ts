/** GRPO with a slow grader: what sampling beside the trainer gains, and what older policies cost. */
import { mkdtemp, rm } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import path from 'node:path';
import { arithmetic, connect, type Environment, evaluate, type Problem, runGrpo } from 'loopwright';
import { emit } from './report.js';

const apiKey = 'a-key-of-the-bench';

/** Grades wait their turn at a grader that takes `ms` for each and `atOnce` at a time. */
function slow<P extends Problem>(environment: Environment<P>, ms: number, atOnce: number): Environment<P> {
  const free = Array.from({ length: atOnce }, () => 0);
  const grade: Environment<P>['grade'] = async (answer, context) => {
    const now = performance.now();
    const slot = free.indexOf(Math.min(...free));
    const end = Math.max(now, free[slot]!) + ms; // slot is one of free
    free[slot] = end;
    await new Promise((resolve) => setTimeout(resolve, end - now));
    return environment.grade(answer, context);
  };
  return { ...environment, grade };
}

/** Greedy answers that a point of the learning curve is of. */
const heldOut = 300;
/** Points of the learning curve, besides the one before the first step. */
const points = 4;

/**
 * Sums of the bundled model, 8 problems × 8 answers a step: k = 0, 1 and 3 for each seed, each in a session of its own. Wall seconds. The learning curve is measured
 * after the run, on weights that were kept on its way, so that it takes none of its time.
 */
export async function overlap(steps: number, ms: number, atOnce: number, seeds: number): Promise<void> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'loopwright-bench-'));
  try {
    await using service = await connect({ dataDir, apiKey, threads: 2 });
    const sums = arithmetic({ operations: ['+'], maxOperand: 99 });
    const problems = sums.problems({ split: 'held-out', count: heldOut, seed: 0 });
    // Seeds outside: what else the machine does is then spread over all k.
    for (const [seed, k] of Array.from({ length: seeds }, (_, i) => i + 1).flatMap((seed) =>
      [0, 1, 3].map((k) => [seed, k] as const),
    )) {
      const training = await service.createLoraTrainingClient({
        ...{ baseModel: 'loopwright-tiny', rank: 16, alpha: 32, seed },
      });
      const kept = [{ step: 0, seconds: 0, sampler: await training.saveWeightsAndGetSamplingClient() }];
      await kept[0]!.sampler.sample([5, 6], { maxTokens: 2 }); // the model is loaded
      const began = Date.now();
      const { metrics } = await runGrpo({
        ...{ training, steps, seed, maxTokens: 8, learningRate: 3e-3, maxStepsOffPolicy: k, loss: 'cispo' as const },
        environment: slow(sums, ms, atOnce),
        onStep: async ({ step }) => {
          const seconds = (Date.now() - began) / 1000;
          if (step % Math.ceil(steps / points) === 0 || step === steps)
            kept.push({ step, seconds, sampler: await training.saveWeightsAndGetSamplingClient() });
        },
      });
      const wall = Date.now() - began;
      const busy = await busyShare(service.baseUrl, training.name, began);
      const tokenizer = await training.getTokenizer();
      const curve: (readonly [step: number, seconds: number, correct: number])[] = [];
      for (const { step, seconds, sampler } of kept) {
        const { correct } = await evaluate(sampler, { environment: sums, tokenizer, problems, maxTokens: 8 });
        curve.push([step, Math.round(seconds), correct]);
      }
      const of = (name: string) => metrics.map((step) => step[name] ?? 0);
      const total = (name: string) => of(name).reduce((sum, value) => sum + value, 0);
      const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
      const third = Math.ceil(steps / 3);
      emit(
        {
          work: `grpo, grader of ${ms} ms, ${atOnce} at once, ${steps} steps, k = ${k}, seed ${seed}`,
          ...{ value: (steps / wall) * 1000, unit: 'steps/s', seconds: wall / 1000 },
          engine_busy: busy,
          waited_s: total('time/wait_ms') / 1000,
          ...{ staleness_mean: mean(of('staleness/mean')), staleness_max: Math.max(...of('staleness/max')) },
          ...{ requeued: total('groups/requeued'), dropped: total('groups/dropped') },
          reward_first_third: mean(of('reward/mean').slice(0, third)),
          reward_last_third: mean(of('reward/mean').slice(-third)),
          ...{ held_out: heldOut, curve_of_step_seconds_correct: curve },
          load_1_min: loadavg()[0],
        },
        { threads: 2, clock: 'wall' },
      );
      await training.close();
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** Share of the time since `began` in which an operation of the session was under way, by its trace. */
async function busyShare(baseUrl: string, name: string, began: number): Promise<number> {
  const headers = { authorization: `Bearer ${apiKey}` };
  const answer = await fetch(`${baseUrl}/v1/sessions/${name}/trace`, { headers });
  // true: the server's own route
  const { operations } = (await answer.json()) as {
    operations: { readonly startedAtMs: number; readonly endedAtMs: number | null }[];
  };
  const spans = operations
    .filter(({ startedAtMs }) => startedAtMs >= began)
    .toSorted((a, b) => a.startedAtMs - b.startedAtMs);
  let [busy, end] = [0, began];
  for (const { startedAtMs, endedAtMs } of spans) {
    const to = endedAtMs ?? startedAtMs;
    busy += Math.max(0, to - Math.max(startedAtMs, end));
    end = Math.max(end, to);
  }
  return busy / (Date.now() - began);
}
