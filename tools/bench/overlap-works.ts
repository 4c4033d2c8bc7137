/** GRPO with a slow grader: what sampling beside the trainer gains, and what older policies cost. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { arithmetic, connect, type Environment, type Problem, runGrpo } from 'loopwright';
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

/** Sums of the bundled model, 8 problems × 8 answers a step: k = 0, 1 and 3, each in a session of its own. Wall seconds. */
export async function overlap(steps: number, ms: number, atOnce: number): Promise<void> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'loopwright-bench-'));
  try {
    await using service = await connect({ dataDir, apiKey, threads: 2 });
    for (const k of [0, 1, 3]) {
      const training = await service.createLoraTrainingClient({
        ...{ baseModel: 'loopwright-tiny', rank: 16, alpha: 32, seed: 1 },
      });
      await (await training.saveWeightsAndGetSamplingClient()).sample([5, 6], { maxTokens: 2 }); // the model is loaded
      const began = Date.now();
      const { metrics } = await runGrpo({
        ...{ training, steps, seed: 1, maxTokens: 8, learningRate: 3e-3, maxStepsOffPolicy: k, loss: 'cispo' as const },
        environment: slow(arithmetic({ operations: ['+'], maxOperand: 99 }), ms, atOnce),
      });
      const wall = Date.now() - began;
      const of = (name: string) => metrics.map((step) => step[name] ?? 0);
      const total = (name: string) => of(name).reduce((sum, value) => sum + value, 0);
      const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
      const third = Math.ceil(steps / 3);
      emit(
        {
          work: `grpo, grader of ${ms} ms, ${atOnce} at once, ${steps} steps, k = ${k}`,
          ...{ value: (steps / wall) * 1000, unit: 'steps/s', seconds: wall / 1000 },
          engine_busy: await busyShare(service.baseUrl, training.name, began),
          waited_s: total('time/wait_ms') / 1000,
          ...{ staleness_mean: mean(of('staleness/mean')), staleness_max: Math.max(...of('staleness/max')) },
          ...{ requeued: total('groups/requeued'), dropped: total('groups/dropped') },
          reward_first_third: mean(of('reward/mean').slice(0, third)),
          reward_last_third: mean(of('reward/mean').slice(-third)),
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
