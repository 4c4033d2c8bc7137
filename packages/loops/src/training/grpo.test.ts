import type { SamplingClient, TrainingClient } from '@loopwright/client';
import { LoopwrightError } from '@loopwright/protocol';
import { describe, expect, expectTypeOf, it } from 'vitest';
import type { Environment } from '../environments/environment.js';
import { Bandit, characterTokenizer, copyEnvironment, copyProblem } from '../testing/bandit.js';
import { rejection } from '../testing/rejection.js';
import type { Sampler, Scorer, Trainer } from './clients.js';
import { evaluate } from './evaluate.js';
import { runGrpo } from './grpo.js';
import type { GrpoOptions, GrpoStep } from './grpo-options.js';

const tokenizer = characterTokenizer();
const problems = [0, 1, 2, 3].map(copyProblem);
const small = { groupsPerStep: 4, samplesPerGroup: 16, maxTokens: 1, steps: 2 };

describe('the types', () => {
  it('take the real clients', () => {
    expectTypeOf<TrainingClient>().toExtend<Trainer>();
    expectTypeOf<SamplingClient>().toExtend<Sampler & Scorer>();
  });
});

describe('runGrpo', () => {
  it('teaches the task: greedy accuracy rises from chance to all', async () => {
    const training = new Bandit();
    const score = async (sampler: Sampler): Promise<number> =>
      (await evaluate(sampler, { environment: copyEnvironment, tokenizer, problems, maxTokens: 1 })).accuracy;
    expect(await score(training.snapshot())).toBeLessThanOrEqual(0.25);
    const { sampler, metrics } = await runGrpo({
      ...small,
      training,
      environment: copyEnvironment,
      steps: 40,
      learningRate: 1e-4,
    });
    expect(await score(sampler)).toBe(1);
    expect(metrics[0]?.['reward/mean']).toBeLessThan(0.3);
    expect(metrics.at(-1)?.['reward/mean']).toBeGreaterThan(0.8);
  });

  it('is the same for the same seed, and another for another', async () => {
    const run = async (seed: number): Promise<readonly unknown[]> => {
      const training = new Bandit();
      const { metrics } = await runGrpo({ ...small, training, environment: copyEnvironment, seed, now: () => 0 });
      return [training.weights, metrics];
    };
    expect(await run(1)).toEqual(await run(1));
    expect(await run(1)).not.toEqual(await run(2));
  });

  it('queues pass, step and save in that order, once a step, and samples from the newest weights', async () => {
    const training = new Bandit();
    const { metrics } = await runGrpo({ ...small, training, environment: copyEnvironment });
    const sampled = ['sample', 'sample', 'sample', 'sample'];
    const trained = ['forward-backward', 'optim-step', 'save-weights'];
    expect(training.calls).toEqual(['save-weights', ...sampled, ...trained, ...sampled, ...trained]);
    for (const step of metrics) {
      for (const name of ['ratio/mean', 'ratio/min', 'ratio/max']) expect(step[name]).toBeCloseTo(1, 9);
    }
  });

  it('reports what a step was made of', async () => {
    const steps: GrpoStep[] = [];
    let time = 0;
    const clock = { now: () => (time += 10) };
    const training = new Bandit();
    await runGrpo({
      ...small,
      ...clock,
      training,
      environment: copyEnvironment,
      steps: 1,
      onStep: (step) => void steps.push(step),
    });
    const [step] = steps;
    expect(step).toMatchObject({ type: 'step-end', step: 1, totalSteps: 1 });
    const rewards = step!.groups.map(({ rollouts }) =>
      rollouts.map(({ grade }) => (grade.status === 'ok' ? grade.reward : 0)),
    );
    const mean = rewards.flat().reduce((sum, reward) => sum + reward, 0) / 64;
    expect(step!.metrics).toMatchObject({
      'reward/mean': mean,
      'completion/length_mean': 1,
      'completion/truncated_share': 1,
      'tokens/sampled': 64,
      'grade/errors': 0,
      'groups/ungraded': 0,
      'time/sample_ms': expect.any(Number),
      'time/grade_ms': expect.any(Number),
      'time/train_ms': 20,
      'time/refresh_ms': 20,
      'engine/busy_share': expect.any(Number),
      'optim/lr': 1e-4,
    });
    const dead = rewards.filter((row) => new Set(row).size === 1).length;
    expect(step!.metrics['groups/dead']).toBe(dead);
    expect(step!.metrics['tokens/trained']).toBe((4 - dead) * 16 * 2);
    const deviations = rewards.map((row) => {
      const share = row.reduce((sum, reward) => sum + reward, 0) / row.length;
      return Math.sqrt(share * (1 - share));
    });
    expect(step!.metrics['reward/std_within_group']).toBeCloseTo(deviations.reduce((sum, d) => sum + d, 0) / 4, 12);
    expect(step!.metrics['grade/unparsed_share']).toBeGreaterThan(0);
  });

  it('skips a step in which every group has equal rewards, says so, and changes nothing', async () => {
    const constant: Environment = { ...copyEnvironment, grade: () => ({ status: 'ok', reward: 0.1 }) };
    const training = new Bandit();
    const before = structuredClone(training.weights);
    const steps: GrpoStep[] = [];
    const reference = { scorer: training.snapshot(), klCoefficient: 0.5 };
    const result = await runGrpo({
      ...small,
      training,
      environment: constant,
      reference,
      onStep: (step) => void steps.push(step),
    });
    expect(result.skippedSteps).toBe(2);
    expect(steps[0]).toMatchObject({ type: 'step-skipped', reason: expect.stringContaining('equal rewards') });
    expect(steps[0]!.metrics).toMatchObject({ 'groups/dead': 4, 'tokens/trained': 0 });
    expect(training.weights).toEqual(before);
    expect(training.calls).not.toContain('forward-backward');
  });

  it('leaves answers out that could not be graded, and counts them', async () => {
    let count = 0;
    const flaky: Environment = {
      ...copyEnvironment,
      grade(answer) {
        count += 1;
        if (count % 16 === 0) throw new Error('grader broke');
        return copyEnvironment.grade(answer);
      },
    };
    const batches: { readonly length: number }[] = [];
    const training = new Bandit({
      onCall: (name, detail) => void (name === 'forward-backward' && batches.push(detail as readonly unknown[])),
    });
    const { metrics } = await runGrpo({ ...small, training, environment: flaky, steps: 1 });
    expect(metrics[0]).toMatchObject({ 'grade/errors': 4 });
    expect(batches[0]?.length).toBe((4 - metrics[0]!['groups/dead']!) * 15);
  });

  it('stops when too many answers could not be graded, with the first failure as cause', async () => {
    const broken: Environment = {
      ...copyEnvironment,
      grade: () => Promise.reject(new Error('no such module')),
    };
    const training = new Bandit();
    const error = await rejection(runGrpo({ ...small, training, environment: broken }));
    expect(error.code).toBe('grader_failed');
    expect(error.message).toContain('64 of 64');
    expect(error.cause).toMatchObject({ message: 'no such module' });
    expect(training.calls).not.toContain('forward-backward');
  });

  it('counts a reward that is no number as a failure of the grader', async () => {
    const odd: Environment = { ...copyEnvironment, grade: () => ({ status: 'ok', reward: Number.NaN }) };
    expect((await rejection(runGrpo({ ...small, training: new Bandit(), environment: odd }))).code).toBe(
      'grader_failed',
    );
  });

  it('measures the distance to a reference every n steps', async () => {
    const training = new Bandit();
    const reference = { scorer: training.snapshot(), everySteps: 2 };
    const { metrics } = await runGrpo({ ...small, training, environment: copyEnvironment, steps: 3, reference });
    expect(metrics[0]!['kl/base']).toBe(0);
    expect(metrics.map((step) => 'time/reference_ms' in step)).toEqual([true, false, true]);
    expect(metrics[1]).not.toHaveProperty('kl/base');
    expect(metrics[2]!['kl/base']).toBeGreaterThan(0);
  });

  it('stays nearer to the reference with a KL coefficient', async () => {
    const distance = async (klCoefficient: number): Promise<number> => {
      const training = new Bandit();
      const reference = { scorer: training.snapshot(), klCoefficient };
      const { metrics } = await runGrpo({ ...small, training, environment: copyEnvironment, steps: 25, reference });
      return metrics.at(-1)!['kl/base']!;
    };
    expect(await distance(0.5)).toBeLessThan(await distance(0));
  });

  it.each(['k2', 'k3'] as const)('stays nearer to the reference with %s as a loss', async (estimator) => {
    const distance = async (klCoefficient: number): Promise<number> => {
      const training = new Bandit();
      const reference = { scorer: training.snapshot(), klCoefficient, placement: 'loss' as const, estimator };
      // Small steps: far below the reference the slope of k3 grows exponentially, and large ones overshoot.
      const gentle = { ...small, steps: 20, learningRate: 2e-5 };
      const { metrics } = await runGrpo({ ...gentle, training, environment: copyEnvironment, reference });
      if (klCoefficient > 0) {
        const custom = training.calls.indexOf('forward-backward-custom');
        expect(training.calls.slice(custom - 1, custom + 3)).toEqual([
          'forward-backward',
          'forward-backward-custom',
          'optim-step',
          'save-weights',
        ]);
      }
      return metrics.at(-1)!['kl/base']!;
    };
    const [held, free] = [await distance(0.3), await distance(0)];
    expect(held).toBeLessThan(0.8 * free);
  });

  it('refuses a KL loss with a training client that has no custom losses', async () => {
    const training: Trainer = Object.assign(new Bandit(), { forwardBackwardCustom: undefined });
    const reference = { scorer: new Bandit().snapshot(), klCoefficient: 1, placement: 'loss' as const };
    const run = runGrpo({ ...small, training, environment: copyEnvironment, reference });
    expect((await rejection(run)).details).toMatchObject({ field: 'options.reference.placement' });
  });

  it('draws other problems in place of those that teach nothing, as often as it is allowed', async () => {
    // Of four problems, only one has answers that differ in reward.
    const mostlyDead: Environment = {
      ...copyEnvironment,
      grade: (answer) => (answer.problem.answer === '2' ? copyEnvironment.grade(answer) : { status: 'ok', reward: 0 }),
    };
    const run = async (refillRounds: number) => {
      const steps: GrpoStep[] = [];
      const onStep = (step: GrpoStep) => void steps.push(step);
      const training = new Bandit();
      await runGrpo({ ...small, training, environment: mostlyDead, steps: 1, seed: 5, refillRounds, onStep });
      const [step] = steps;
      const live = step!.groups.length - step!.metrics['groups/dead']!;
      return { live, sampled: step!.groups.length, step: step!, metrics: step!.metrics };
    };
    const [without, once, often] = [await run(0), await run(1), await run(100)];
    expect(without.sampled).toBe(4);
    expect(without.metrics['groups/refilled']).toBe(0);
    expect(once.sampled).toBe(4 + (4 - without.live));
    expect(often.live).toBe(4);
    expect(often.metrics['groups/refilled']).toBe(often.sampled - 4);
    expect(often.metrics['tokens/trained']).toBe(4 * 16 * 2);
    // What was drawn at first is drawn again, and no two groups share their seed.
    const first = (step: GrpoStep) => step.groups.slice(0, 4).map(({ rollouts }) => rollouts.map(({ text }) => text));
    expect(first(often.step)).toEqual(first(without.step));
    const texts = often.step.groups.map(({ rollouts }) => rollouts.map(({ text }) => text).join(''));
    expect(new Set(texts).size).toBe(texts.length);
  });

  it('counts failures of the grader over all rounds of a step', async () => {
    let count = 0;
    const flaky: Environment = {
      ...copyEnvironment,
      // The first four groups all fail to teach; then, of the refill, some can't be judged.
      grade: () => {
        count += 1;
        if (count > 64 && count % 3 === 0) throw new Error('grader broke');
        return { status: 'ok', reward: 0 };
      },
    };
    const options = { ...small, training: new Bandit(), environment: flaky, steps: 1, refillRounds: 1 };
    // 21 of 64 in the second round, but of 128 in all.
    const { skippedSteps } = await runGrpo(options);
    expect(skippedSteps).toBe(1);
    expect((await rejection(runGrpo({ ...options, maxGraderErrorShare: 0.1 }))).code).toBe('grader_failed');
  });

  it('skips a step of which every answer was cut off, when those are masked', async () => {
    const steps: GrpoStep[] = [];
    const training = new Bandit();
    await runGrpo({
      ...small,
      training,
      environment: copyEnvironment,
      steps: 1,
      overlong: 'mask',
      onStep: (step) => void steps.push(step),
    });
    expect(steps[0]).toMatchObject({ type: 'step-skipped', reason: expect.stringContaining('cut off') });
    expect(steps[0]!.metrics['completion/truncated_share']).toBe(1);
  });

  it('uses the advantages it is given', async () => {
    const training = new Bandit();
    const before = structuredClone(training.weights);
    const advantages = (rewards: readonly (readonly number[])[]): number[][] => rewards.map((row) => row.map(() => 0));
    await runGrpo({ ...small, training, environment: copyEnvironment, advantages });
    expect(training.weights).toEqual(before);
  });

  it('passes on what the client throws, after cancelling what was queued', async () => {
    const training = new Bandit({
      onCall: (name) => {
        if (name === 'forward-backward') throw new LoopwrightError({ code: 'out_of_memory', message: 'full' });
      },
    });
    const before = structuredClone(training.weights);
    expect((await rejection(runGrpo({ ...small, training, environment: copyEnvironment }))).code).toBe('out_of_memory');
    expect(training.weights).toEqual(before);
  });

  const bad: [string, Partial<GrpoOptions<(typeof problems)[number]>>][] = [
    ['steps', { steps: 0 }],
    ['groupsPerStep', { groupsPerStep: 0.5 }],
    ['samplesPerGroup', { samplesPerGroup: 1 }],
    ['maxTokens', { maxTokens: 0 }],
    ['temperature', { temperature: 0 }],
    ['learningRate', { learningRate: 1 }],
    ['maxGraderErrorShare', { maxGraderErrorShare: Number.NaN }],
    ['refillRounds', { refillRounds: -1 }],
    ['overlong.penalizeLast', { overlong: { penalizeLast: 2 } }],
    ['reference.everySteps', { reference: { scorer: new Bandit().snapshot(), everySteps: 0 } }],
  ];
  it.each(bad)('refuses a wrong %s before any work', async (field, wrong) => {
    const training = new Bandit();
    const error = await rejection(runGrpo({ ...small, training, environment: copyEnvironment, ...wrong }));
    expect(error).toMatchObject({ code: 'invalid_argument', details: { field: `options.${field}` } });
    expect(training.calls).toEqual([]);
  });
});

describe('an abort', () => {
  it.each(['save-weights', 'sample', 'forward-backward', 'optim-step'])(
    'during %s ends the run and leaves nothing going',
    async (stage) => {
      const controller = new AbortController();
      const training = new Bandit({
        onCall: (name) => {
          if (name !== stage) return;
          controller.abort(new Error('Ctrl-C'));
          return new Promise<void>(() => undefined); // never ends by itself
        },
      });
      const error = await rejection(
        runGrpo({ ...small, training, environment: copyEnvironment, signal: controller.signal }),
      );
      expect(error).toMatchObject({ code: 'cancelled', cause: { message: 'Ctrl-C' } });
    },
  );

  it('during a grader that never ends', async () => {
    const controller = new AbortController();
    const endless: Environment = {
      ...copyEnvironment,
      grade: () => {
        controller.abort();
        return new Promise(() => undefined);
      },
    };
    const run = runGrpo({ ...small, training: new Bandit(), environment: endless, signal: controller.signal });
    expect((await rejection(run)).code).toBe('cancelled');
  });

  it('between steps', async () => {
    const controller = new AbortController();
    const seen: number[] = [];
    const run = runGrpo({
      ...small,
      training: new Bandit(),
      environment: copyEnvironment,
      steps: 50,
      signal: controller.signal,
      onStep: ({ step }) => {
        seen.push(step);
        if (step === 3) controller.abort();
      },
    });
    expect((await rejection(run)).code).toBe('cancelled');
    expect(seen).toEqual([1, 2, 3]);
  });

  it('before the start', async () => {
    const training = new Bandit();
    const run = runGrpo({ ...small, training, environment: copyEnvironment, signal: AbortSignal.abort() });
    expect((await rejection(run)).code).toBe('cancelled');
    expect(training.calls).toEqual([]);
  });
});
