/** GRPO over episodes of several turns: the same loop, other rollouts. */
import { readFileSync } from 'node:fs';
import type { DatumFor } from '@loopwright/protocol';
import { describe, expect, it } from 'vitest';
import type { RlLossName } from '../datums/rl-datum.js';
import type { Problem } from '../environments/environment.js';
import type { EpisodeEnvironment, Reply } from '../episodes/environment.js';
import { Bandit, characterTokenizer, copyProblem } from '../testing/bandit.js';
import { rejection } from '../testing/rejection.js';
import type { Credit } from './episode-credit.js';
import { runGrpo } from './grpo.js';
import type { EpisodeGrpoOptions, EpisodeGrpoStep } from './grpo-options.js';

const tokenizer = characterTokenizer('{% for m in messages %}{{ m.content }}{% endfor %}');

/** `3=` is to be answered by 3; whoever is wrong is asked once more. */
const secondTry: EpisodeEnvironment<Problem> = {
  name: 'second-try',
  draw: (random) => copyProblem(random.integer(4)),
  begin: ({ question, answer }) => ({
    messages: [{ role: 'user', content: question }],
    respond: ({ index, text }): Reply => {
      if (text === answer) return { grade: { status: 'ok', reward: index === 0 ? 1 : 0.5 } };
      return index === 1 ? { grade: { status: 'ok', reward: 0 } } : { messages: [{ role: 'user', content: '?' }] };
    },
  }),
};

/** `3=` is to be answered by 3, and `?` by it again: each answer earns its own. */
const eachItsOwn: EpisodeEnvironment<Problem> = {
  ...secondTry,
  begin: ({ question, answer }) => ({
    messages: [{ role: 'user', content: question }],
    respond: ({ index, text }): Reply => {
      const reward = text === answer ? 1 : 0;
      return index === 0 ? { messages: [{ role: 'user', content: question }], reward } : graded(reward);
    },
  }),
};

/** With another word on what happens to an answer. */
const responding = (respond: (turn: number, at: number) => Reply | Promise<Reply>): EpisodeEnvironment<Problem> => {
  let begun = 0;
  return {
    ...secondTry,
    begin: ({ question }) => {
      const at = begun++;
      return { messages: [{ role: 'user', content: question }], respond: ({ index }) => respond(index, at) };
    },
  };
};
const graded = (reward: number): Reply => ({ grade: { status: 'ok', reward } });

type Datum = DatumFor<RlLossName>;
const numbers = (values: unknown): number[] => Array.from<unknown, number>(values as ArrayLike<unknown>, Number);

/** A run with the passes that it made. */
async function run(options: Partial<EpisodeGrpoOptions<Problem>> = {}) {
  const [passes, near, steps]: [Datum[][], Datum[][], EpisodeGrpoStep<Problem>[]] = [[], [], []];
  const training = new Bandit({
    onCall: (name, detail) => {
      if (name === 'forward-backward') passes.push(detail as Datum[]);
      if (name === 'forward-backward-custom') near.push(detail as Datum[]);
    },
  });
  const result = await runGrpo<Problem>({
    ...{ training, tokenizer, environment: secondTry, steps: 1, groupsPerStep: 4, samplesPerGroup: 16, maxTokens: 1 },
    onStep: (step) => void steps.push(step),
    ...options,
  });
  return { training, passes, near, steps, ...result };
}

describe('runGrpo over episodes', () => {
  it('teaches a task of two turns: most are right at once in the end', async () => {
    const { metrics } = await run({ steps: 40 });
    expect(metrics[0]!['reward/mean']).toBeLessThan(0.3);
    expect(metrics.at(-1)!['reward/mean']).toBeGreaterThan(0.8);
    expect(metrics[0]!['episode/turns_mean']).toBeGreaterThan(1.5);
    expect(metrics.at(-1)!['episode/turns_mean']).toBeLessThan(1.4);
    // Exactly what was sampled is trained: the ratio is 1 before the update.
    for (const name of ['ratio/mean', 'ratio/min', 'ratio/max']) expect(metrics[0]![name]).toBeCloseTo(1, 9);
  });

  it('is the same for the same seed, and another for another', async () => {
    const weights = async (seed: number) => (await run({ seed, steps: 2 })).training.weights;
    expect(await weights(1)).toEqual(await weights(1));
    expect(await weights(1)).not.toEqual(await weights(2));
  });

  it('gives all sampled tokens of an episode the distance of its reward from its group’s mean', async () => {
    const { passes, steps } = await run({ groupsPerStep: 1 });
    const { rollouts } = steps[0]!.groups[0]!;
    const mean = rollouts.reduce((sum, { reward }) => sum + reward!, 0) / rollouts.length;
    expect(passes[0]).toHaveLength(rollouts.length);
    for (const [i, { lossFnInputs }] of passes[0]!.entries()) {
      const { reward, turns } = rollouts[i]!;
      const weights = numbers(lossFnInputs.weights);
      expect(weights.filter((weight) => weight === 1)).toHaveLength(turns.length);
      numbers(lossFnInputs.advantages).forEach((advantage, t) => {
        expect(advantage).toBeCloseTo(weights[t] === 1 ? reward! - mean : 0, 12);
      });
    }
  });

  describe('with credit for turns', () => {
    /** The first turn earns by itself; the second gives the rest. All episodes whose turns earn 1 and 0, or 0 and 1, come to the same. */
    const twoTurns = (first: (at: number) => number, second: (at: number) => number) =>
      responding((turn, at) =>
        turn === 0 ? { messages: [{ role: 'user', content: '?' }], reward: first(at) } : graded(second(at)),
      );
    /** By datum, those of its sampled tokens. */
    const advantagesOf = (data: readonly Datum[]) =>
      data.map(({ lossFnInputs: { advantages, weights } }) =>
        numbers(advantages).filter((_, t) => numbers(weights)[t] === 1),
      );
    const halves = { groupsPerStep: 1, samplesPerGroup: 4 };

    it('gives each turn the distance of what followed it from the group’s mean at that turn', async () => {
      const some = (credit: Credit, more = {}) => {
        const environment = twoTurns(
          (at) => at % 2,
          (at) => (at < 2 ? 1 : 0),
        );
        return run({ ...halves, environment, credit, ...more });
      };
      const whole = await some('episode');
      expect(advantagesOf(whole.passes[0]!)).toEqual([
        [0, 0],
        [1, 1],
        [-1, -1],
        [0, 0],
      ]);
      const turns = await some('turn');
      expect(advantagesOf(turns.passes[0]!)).toEqual([
        [0, 0.5],
        [1, 0.5],
        [-1, -0.5],
        [0, -0.5],
      ]);
      expect(turns.metrics[0]).toMatchObject({ 'turns/of_groups': 2, 'turns/dead': 0 });
      const near = await some({ discount: 0 }, { lengthNormalization: 'sequence' });
      expect(advantagesOf(near.passes[0]!)).toEqual([
        [-0.25, 0.25],
        [0.25, 0.25],
        [-0.25, -0.25],
        [0.25, -0.25],
      ]);
    });

    it('teaches where whole episodes are worth the same but their turns are not, and counts turns that teach nothing', async () => {
      const swapped = () =>
        twoTurns(
          (at) => at % 2,
          (at) => 1 - (at % 2),
        );
      const whole = await run({ ...halves, environment: swapped() });
      expect(whole).toMatchObject({ skippedSteps: 1, metrics: [{ 'groups/dead': 1 }] });
      const turns = await run({ ...halves, environment: swapped(), credit: 'turn' });
      expect(turns).toMatchObject({ skippedSteps: 0, metrics: [{ 'groups/dead': 0, 'turns/dead': 1 }] });
      expect(advantagesOf(turns.passes[0]!)).toEqual([
        [0, 0.5],
        [0, -0.5],
        [0, 0.5],
        [0, -0.5],
      ]);
      const constant = twoTurns(
        () => 1,
        () => 1,
      );
      const none = await run({ ...halves, environment: constant, credit: 'turn', refillRounds: 1 });
      expect(none).toMatchObject({ skippedSteps: 1, metrics: [{ 'groups/dead': 2, 'turns/dead': 4 }] });
    });

    it('trains every turn of an episode with its floor, and lowers the turn that was too long', async () => {
      const failing = responding((turn, at) => {
        if (turn === 0) return { messages: [{ role: 'user', content: '?' }], reward: 9 };
        return at === 0 ? { grade: { status: 'grader_error', error: new Error('x') } } : graded(-9);
      });
      const options = { ...halves, environment: failing, credit: 'turn', maxGraderErrorShare: 1 } as const;
      const floored = await run({ ...options, onGraderError: { floor: -4 } });
      // Returns at the first turn: −4 0 0 0; at the second −4 −9 −9 −9.
      expect(advantagesOf(floored.passes[0]!)).toEqual([[-3, 3.75], ...new Array(3).fill([1, -1.25])]);
      const long = twoTurns(
        (at) => at % 2,
        () => 0,
      );
      const lowered = await run({ ...halves, environment: long, credit: 'turn', overlong: { penalizeLast: 1 } });
      for (const { rollouts } of lowered.steps[0]!.groups)
        for (const [at, { reward, turns }] of rollouts.entries()) {
          expect(reward).toBe((at % 2) - 1); // each answer is as long as it may be
          expect(turns.map((turn) => turn.reward)).toEqual([(at % 2) - 1, 0]);
        }
    });

    it('learns both turns of a task in which each earns its own', async () => {
      const { metrics } = await run({ environment: eachItsOwn, credit: 'turn', steps: 25 });
      expect(metrics[0]!['reward/mean']).toBeLessThan(0.8);
      expect(metrics.at(-1)!['reward/mean']).toBeGreaterThan(1.6);
    });
  });

  it('is called as the guide says', async () => {
    const guide = readFileSync(new URL('../../../../docs/guides/environments.md', import.meta.url), 'utf8');
    const [, line] = /```ts\n(.*credit: .*)\n```/.exec(guide)!;
    const training = Object.assign(new Bandit(), { getTokenizer: async () => tokenizer });
    const [environment, steps] = [eachItsOwn, 1];
    // biome-ignore format: the guide's line
    const { sampler } = await runGrpo({ training, environment, credit: 'turn', steps });
    expect(sampler).toBeDefined();
    expect(readFileSync(new URL(import.meta.url), 'utf8')).toContain(`\n    ${line!.trim()}\n`);
  });

  it('skips a step in which all are worth the same, and draws others where that is allowed', async () => {
    const constant = responding(() => graded(0.5));
    const { training, skippedSteps, steps } = await run({ environment: constant, refillRounds: 2 });
    expect(skippedSteps).toBe(1);
    expect(steps[0]).toMatchObject({ type: 'step-skipped', metrics: { 'groups/dead': 12, 'groups/refilled': 8 } });
    expect(training.calls).not.toContain('forward-backward');
  });

  it('leaves episodes out that fail, counts them by what happened, and stops above a share', async () => {
    const failing = (every: number) =>
      responding((_, at) => {
        if (at % every === 0) throw new Error('the world broke');
        return graded(at % 2);
      });
    const { metrics, steps, passes } = await run({ environment: failing(8) });
    expect(metrics[0]).toMatchObject({ 'episode/environment_error': 8, 'grade/excluded': 8, 'grade/errors': 0 });
    expect(passes[0]).toHaveLength(64 - 8);
    expect(steps[0]!.warnings).toEqual(['8 of 64 episodes came to no reward (8 environment_error) and were left out']);
    const error = await rejection(run({ environment: failing(4) }));
    expect(error).toMatchObject({ code: 'rollouts_failed', details: { failed: 16, of: 64 } });
  });

  it('trains those that could not be graded with a floor, where one is set', async () => {
    const environment = responding((_, at) =>
      at % 8 === 0 ? { grade: { status: 'grader_error', error: new Error('no judge') } } : graded(1),
    );
    const { metrics, steps, passes } = await run({ environment, onGraderError: { floor: -1 } });
    expect(metrics[0]).toMatchObject({ 'grade/errors': 8, 'grade/excluded': 0, 'reward/mean': (56 - 8) / 64 });
    expect(passes[0]).toHaveLength(64);
    expect(steps[0]!.warnings[0]).toContain('8 were trained with the floor reward');
    const strict = rejection(run({ environment, onGraderError: { floor: -1 }, maxGraderErrorShare: 0.1 }));
    expect(await strict).toMatchObject({ code: 'rollouts_failed' });
  });

  it('ends an episode at its time, and no other', async () => {
    const due: (() => void)[] = [];
    const environment = responding((_, at) => {
      if (at !== 5) return graded(at % 2);
      due[at]!(); // the clock of this one
      return new Promise(() => {});
    });
    const after = (_: number, action: () => void) => {
      due.push(action);
      return () => {};
    };
    const { metrics, passes } = await run({ environment, after });
    expect(metrics[0]).toMatchObject({ 'episode/timeout': 1, 'grade/excluded': 1 });
    expect(passes[0]).toHaveLength(63);
  });

  it('stays near to a reference: by the reward of each token, or by a loss of its own', async () => {
    const reference = { scorer: new Bandit().snapshot(), klCoefficient: 0.5 };
    const plain = await run({ steps: 2 });
    const lowered = await run({ steps: 2, reference });
    expect(lowered.passes[0]).toEqual(plain.passes[0]); // nothing has moved yet
    expect(lowered.metrics[0]!['kl/base']).toBeCloseTo(0, 12);
    expect(lowered.metrics[1]!['kl/base']).toBeGreaterThan(1e-4);
    const uniform = -Math.log(tokenizer.vocabSize);
    for (const [d, { lossFnInputs }] of plain.passes[1]!.entries()) {
      const [weights, logprobs, before] = [lossFnInputs.weights, lossFnInputs.logprobs, lossFnInputs.advantages].map(
        numbers,
      );
      numbers(lowered.passes[1]![d]!.lossFnInputs.advantages).forEach((advantage, t) => {
        expect(advantage).toBeCloseTo(weights![t] === 1 ? before![t]! - 0.5 * (logprobs![t]! - uniform) : 0, 9);
      });
    }
    const held = await run({ steps: 2, reference: { ...reference, placement: 'loss' } });
    expect(held.passes[0]).toEqual(plain.passes[0]);
    const { weights, refLogProb } = held.near[0]![0]!.lossFnInputs as unknown as Record<string, readonly number[]>;
    expect(weights).toEqual(numbers(held.passes[0]![0]!.lossFnInputs.weights));
    expect(refLogProb!.filter((_, t) => weights![t] === 1).every((score) => Math.abs(score - uniform) < 1e-9)).toBe(
      true,
    );
  });

  it('divides by the tokens of an episode, and leaves those out that were cut off, where that is asked for', async () => {
    const [plain, divided] = [await run(), await run({ lengthNormalization: 'sequence' })];
    for (const [d, { lossFnInputs }] of plain.passes[0]!.entries()) {
      const turns = numbers(lossFnInputs.weights).filter((weight) => weight === 1).length;
      const wanted = numbers(lossFnInputs.advantages).map((advantage) => advantage / turns);
      expect(numbers(divided.passes[0]![d]!.lossFnInputs.advantages)).toEqual(wanted);
    }
    const masked = await run({ overlong: 'mask' }); // each answer is one token, cut off by its limit
    expect(masked.skippedSteps).toBe(1);
  });

  it('says once that another temperature samples from another policy than the one that is trained (B6)', async () => {
    const constant = responding((_, at) => graded(at % 2));
    const { steps } = await run({ environment: constant, temperature: 0.5, steps: 2 });
    const named = steps.map(({ alarms }) => alarms.filter(({ name }) => name === 'guard/sampling-policy'));
    expect(named).toEqual([
      [expect.objectContaining({ level: 'note', seen: expect.stringMatching(/^temperature 0\.5: .* nats a token/) })],
      [],
    ]);
    expect(steps[0]!.metrics['ratio/mean']).toBeCloseTo(1, 9);
    const plain = await run({ environment: responding((_, at) => graded(at % 2)) });
    expect(plain.steps[0]!.alarms.map(({ name }) => name)).not.toContain('guard/sampling-policy');
  });

  it('refuses wrong options at once', async () => {
    const training = new Bandit();
    for (const wrong of [
      { maxTurns: 0 },
      { maxContext: 1 },
      { timeoutMs: 0 },
      { concurrency: 0.5 },
      { samplesPerGroup: 1 },
      { credit: { discount: 2 } },
      { credit: 'step' as 'turn' }, // from a program without types
    ])
      expect(await rejection(run({ training, ...wrong }))).toMatchObject({ code: 'invalid_argument' });
    expect(training.calls).toEqual([]);
  });

  it('needs a chat template', async () => {
    const error = await rejection(run({ tokenizer: characterTokenizer() }));
    expect(error).toMatchObject({ code: 'invalid_argument', details: { field: 'tokenizer' } });
  });
});
