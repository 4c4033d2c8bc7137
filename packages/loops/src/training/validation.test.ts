/** Measuring on held-out problems while a loop trains. */
import { describe, expect, it } from 'vitest';
import { sftDatum } from '../datums/sft-datum.js';
import type { Problem } from '../environments/environment.js';
import type { EpisodeEnvironment, Reply } from '../episodes/environment.js';
import { Bandit, characterTokenizer, copyEnvironment, copyProblem } from '../testing/bandit.js';
import { MemoryCheckpoints } from '../testing/memory-checkpoints.js';
import { rejection } from '../testing/rejection.js';
import { evaluateEpisodes } from './evaluate-episodes.js';
import { runGrpo } from './grpo.js';
import { runSft } from './sft.js';
import type { ValidationStep } from './validation.js';

const tokenizer = characterTokenizer('{% for m in messages %}{{ m.content }}{% endfor %}');
const problems = [0, 1, 2, 3].map(copyProblem);
const small = { groupsPerStep: 2, samplesPerGroup: 4, maxTokens: 1, steps: 7, now: () => 0 };

/** `3=` is to be answered by 3; whoever says `x` breaks it, and 9 is never the end. */
const onceMore: EpisodeEnvironment<Problem> = {
  name: 'once-more',
  draw: (random) => copyProblem(random.integer(4)),
  begin: ({ question, answer }) => ({
    messages: [{ role: 'user', content: question }],
    respond: ({ text }): Reply =>
      text === answer
        ? { grade: { status: 'ok', reward: 1 } }
        : answer === '9'
          ? { messages: [{ role: 'user', content: question }] }
          : { grade: { status: 'ok', reward: 0 } },
  }),
};

describe('validation of a run on rewards', () => {
  it('is made before training, every n steps and at the end, of the weights after that step', async () => {
    const seen: ValidationStep[] = [];
    const order: string[] = [];
    const { validations } = await runGrpo({
      ...small,
      steps: 40,
      groupsPerStep: 4,
      samplesPerGroup: 16,
      training: new Bandit(),
      tokenizer,
      environment: copyEnvironment,
      validation: { problems, everySteps: 15 },
      onStep: ({ step }) => void order.push(`step ${step}`),
      onValidation: (validation) => {
        order.push(`validation ${validation.step}`);
        seen.push({ ...validation, evaluation: undefined });
        expect(validation.evaluation.answers).toHaveLength(4);
      },
    });
    expect(seen.map(({ step, type, totalSteps }) => [step, type, totalSteps])).toEqual(
      [0, 15, 30, 40].map((step) => [step, 'validation', 40]),
    );
    expect(order.slice(0, 2)).toEqual(['validation 0', 'step 1']);
    expect(order.indexOf('validation 15')).toBe(order.indexOf('step 15') + 1);
    expect(validations).toEqual(seen.map(({ step, metrics }) => ({ step, metrics })));
    expect(validations[0]?.metrics).toMatchObject({ 'validation/accuracy': 0.25, 'validation/n': 4 });
    expect(validations.at(-1)?.metrics).toMatchObject({ 'validation/accuracy': 1, 'validation/n': 4 });
    expect(validations.at(-1)?.metrics['validation/low']).toBeCloseTo(0.51, 2);
  });

  it('changes no number of the training, with sampling ahead or without', async () => {
    for (const maxStepsOffPolicy of [0, 1]) {
      const weights = async (validation: object): Promise<unknown> => {
        const training = new Bandit();
        await runGrpo({
          ...small,
          maxStepsOffPolicy,
          training,
          tokenizer,
          environment: copyEnvironment,
          ...validation,
        });
        return maxStepsOffPolicy === 0
          ? training.weights
          : training.calls.filter((name) => name === 'optim-step').length;
      };
      const onNotice = (): void => undefined;
      expect(await weights({ onNotice, validation: { problems, everySteps: 1 } })).toEqual(await weights({ onNotice }));
    }
  });

  it('comes after skipped steps too, and can leave out the beginning', async () => {
    const { validations, skippedSteps } = await runGrpo({
      ...small,
      training: new Bandit(),
      tokenizer,
      environment: { ...copyEnvironment, grade: () => ({ status: 'ok', reward: 0 }) },
      validation: { problems, everySteps: 3, atStart: false },
    });
    expect(skippedSteps).toBe(7);
    expect(validations.map(({ step }) => step)).toEqual([3, 6, 7]);
  });

  it('plays one greedy episode of each problem where they have several turns', async () => {
    const { validations } = await runGrpo({
      ...small,
      steps: 2,
      training: new Bandit(),
      tokenizer,
      environment: onceMore,
      maxTurns: 3,
      validation: { problems: [...problems, copyProblem(9)] },
    });
    expect(validations.map(({ step }) => step)).toEqual([0, 2]);
    expect(validations[0]?.metrics).toMatchObject({
      'validation/accuracy': 0.2,
      'validation/n': 5,
      'validation/grader_errors': 0,
    });
  });

  it('is made again where a run goes on after a step at which it was due, for it may have been cut off', async () => {
    const options = { ...small, tokenizer, environment: copyEnvironment, validation: { problems, everySteps: 3 } };
    const memory = new MemoryCheckpoints();
    await runGrpo({ ...options, steps: 3, ...memory.open({ every: 3 }) });
    const rest = await runGrpo({ ...options, steps: 4, ...memory.open({ every: 3 }) });
    expect(rest.validations.map(({ step }) => step)).toEqual([3, 4]);
  });

  it('is refused when it can measure nothing', async () => {
    const options = { ...small, training: new Bandit(), tokenizer, environment: copyEnvironment };
    const refused = [
      { problems: [] },
      { problems, everySteps: 0 },
      { problems, maxTokens: 0.5 },
      { problems, correctReward: Number.NaN },
    ];
    for (const validation of refused) {
      const error = await rejection(runGrpo({ ...options, validation }));
      expect([error.code, error.message]).toEqual(['invalid_argument', expect.stringContaining('validation.')]);
    }
  });
});

describe('evaluateEpisodes', () => {
  const options = { tokenizer, maxTokens: 1, maxTurns: 2, problems };

  it('counts what was cut off as wrong, and what broke as not measured', async () => {
    const broken: EpisodeEnvironment<Problem> = {
      ...onceMore,
      begin(problem, context) {
        if (problem.id === '3=') throw new Error('no such room');
        return onceMore.begin(problem, context);
      },
    };
    const given = { ...options, environment: broken, problems: [...problems, copyProblem(9)] };
    const sampler = new Bandit().snapshot();
    expect(await evaluateEpisodes(sampler, given)).toMatchObject({ correct: 1, n: 4, accuracy: 0.25, graderErrors: 1 });
    const error = await rejection(evaluateEpisodes(sampler, { ...given, maxGraderErrorShare: 0.1 }));
    expect([error.code, error.message]).toEqual(['rollouts_failed', expect.stringContaining('1 of 5')]);
  });
});

describe('validation of examples', () => {
  const example = (digit: number) => {
    const { question, answer } = copyProblem(digit);
    return sftDatum({ prompt: tokenizer.encode(question), completion: tokenizer.encode(answer) });
  };
  const data = [0, 1, 2, 3].map(example);

  it('tells the mean loss per token with its interval, when it is due', async () => {
    const steps: number[] = [];
    const { validations, heldOutLoss } = await runSft({
      ...{ training: new Bandit(), data, heldOut: [example(0), example(3)], epochs: 3, batchSize: 2, now: () => 0 },
      validation: { everySteps: 4 },
      onValidation: ({ step }) => void steps.push(step),
    });
    expect(steps).toEqual([0, 4, 6]);
    expect(validations[0]?.metrics).toMatchObject({ 'validation/n': 2, 'validation/tokens': 2 });
    expect(validations[0]?.metrics['validation/loss']).toBeCloseTo(Math.log(17), 12);
    expect(validations.map(({ metrics }) => metrics['validation/loss'])).toMatchObject([
      heldOutLoss?.before,
      expect.any(Number),
      heldOutLoss?.after,
    ]);
  });

  it('is before and after where nothing else is said, without an interval of one example', async () => {
    const { validations } = await runSft({ training: new Bandit(), data, heldOut: [example(0)], batchSize: 1 });
    expect(validations.map(({ step }) => step)).toEqual([0, 4]);
    expect(validations[0]?.metrics).not.toHaveProperty('validation/loss_low');
  });
});
