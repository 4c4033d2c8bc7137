/** Each fault is put into a real run of the bundled model and raises its alarm, and no other above a note. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import {
  type Alarm,
  type ArithmeticProblem,
  alarmRules,
  connect,
  createGuard,
  type Environment,
  evaluate,
  rlDatum,
  type Sampler,
  type SamplingClient,
  type Scorer,
} from 'loopwright';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  endTraining,
  grpoAlarms,
  type HandOptions,
  handLoop,
  loopProblems,
  type Service,
  startTraining,
  sums,
  type Training,
  teach,
  trainerWith,
} from './bench.js';
import { cleanRuns, runClean } from './clean.js';

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let service: Service;
let training: Training;

beforeAll(async () => {
  folder = await temporaryDirectory();
  service = await connect({ dataDir: join(folder.path, 'data') });
});
afterEach(endTraining);
afterAll(async () => {
  await service.close();
  await folder[Symbol.asyncDispose]();
});

/** Names above a note, each once. */
function grave(alarms: readonly Alarm[]): string[] {
  return [...new Set(alarms.filter(({ level }) => level !== 'note').map(({ name }) => name))];
}

function grading(grade: Environment<ArithmeticProblem>['grade']): Environment<ArithmeticProblem> {
  return { ...sums, grade };
}

test('a run without a fault raises none', async () => {
  const { alarms, error } = await grpoAlarms(await startTraining(service));
  expect(error).toBeUndefined();
  expect(grave(alarms)).toEqual([]);
});

test('a loop written by hand raises none either', async () => {
  expect(grave(await handLoop({ training: await startTraining(service), steps: 3 }))).toEqual([]);
});

test.each(cleanRuns.filter(({ seed }) => [3, 6, 7, 9].includes(seed)))('$name raises none: four steps', async (run) => {
  expect(grave((await runClean(run, { service, steps: 4 })).alarms)).toEqual([]);
});

describe('sampler and trainer', () => {
  test('logprobs of another temperature: guard/ratio, with the worst token', async () => {
    training = await startTraining(service);
    const scaled = async () => {
      const sampler = await training.saveWeightsAndGetSamplingClient();
      const sample: Sampler['sample'] = async (...call) => {
        const { sequences } = await sampler.sample(...call);
        return { sequences: sequences.map((each) => ({ ...each, logprobs: each.logprobs.map((lp) => lp * 1.1) })) };
      };
      return { sample };
    };
    const alarms = await handLoop({ training, steps: 2, samplerOf: scaled });
    expect(grave(alarms)).toEqual(['guard/ratio']);
    expect(alarms[0]).toMatchObject({
      where: expect.stringMatching(/^worst: datum \d+, position \d+, token id \d+: /),
    });
  });

  test('sampling at temperature 0.7: a note with its size', async () => {
    const { alarms } = await grpoAlarms(await startTraining(service), { temperature: 0.7, steps: 2 });
    expect(grave(alarms)).toEqual([]);
    expect(alarms.filter(({ name }) => name === 'guard/sampling-policy')).toMatchObject([
      { level: 'note', seen: expect.stringMatching(/^temperature 0\.7: .* is 0\.\d+ nats a token/) },
    ]);
  });

  test('a sampler that is refreshed every other step: guard/stale-sampler', async () => {
    training = await startTraining(service);
    let last: Awaited<ReturnType<Training['saveWeightsAndGetSamplingClient']>> | undefined;
    const samplerOf = async (step: number) => {
      if (last === undefined || step % 2 === 0) last = await training.saveWeightsAndGetSamplingClient();
      return last;
    };
    expect(grave(await handLoop({ training, steps: 4, samplerOf }))).toEqual(['guard/stale-sampler']);
  });

  test('one sampler for the whole run: guard/sampler-never-refreshed', async () => {
    training = await startTraining(service);
    const first = await training.saveWeightsAndGetSamplingClient();
    const cached = trainerWith(training, { saveWeightsAndGetSamplingClient: async () => first });
    const { alarms } = await grpoAlarms(cached, { steps: 3 });
    expect(grave(alarms)).toEqual(['guard/sampler-never-refreshed']);
  });
});

describe('answers and graders', () => {
  test('maxTokens 1: guard/all-truncated', async () => {
    const { alarms } = await grpoAlarms(await startTraining(service), { maxTokens: 1, steps: 3 });
    expect(grave(alarms)).toEqual(['guard/all-truncated']);
  });

  test('a grader that looks for another format: guard/all-unparsed', async () => {
    const environment = grading(() => ({ status: 'unparsed', reward: 0 }));
    const { alarms } = await grpoAlarms(await startTraining(service), { environment, steps: 3 });
    expect(grave(alarms)).toEqual(['guard/all-unparsed']);
  });

  test('a grader that throws for every tenth answer: guard/grader-failing', async () => {
    let n = 0;
    const environment = grading((answer, context) => {
      if (n++ % 10 === 0) throw new Error('boom');
      return sums.grade(answer, context);
    });
    const { alarms } = await grpoAlarms(await startTraining(service), { environment, steps: 3 });
    expect(grave(alarms)).toEqual(['guard/grader-failing']);
  });

  test('a grader that always throws: the alarm at level stop, and the end of the run', async () => {
    const environment = grading(() => {
      throw new Error('boom');
    });
    const { alarms, error } = await grpoAlarms(await startTraining(service), { environment });
    expect(alarms).toMatchObject([{ name: 'guard/grader-failing', level: 'stop' }]);
    expect(error).toMatchObject({ code: 'grader_failed' });
  });

  test('a grader that always says 0.5: guard/grader-constant', async () => {
    const environment = grading(() => ({ status: 'ok', reward: 0.5 }));
    const { alarms } = await grpoAlarms(await startTraining(service), { environment });
    expect(grave(alarms)).toEqual(['guard/grader-constant']);
  });

  test('a grader that judges the problem, not the answer: guard/dead-batch', async () => {
    const environment = grading(({ problem }) => ({ status: 'ok', reward: problem.a % 2 }));
    const { alarms } = await grpoAlarms(await startTraining(service), { environment });
    expect(grave(alarms)).toEqual(['guard/dead-batch']);
  });
});

describe('the gradient', () => {
  test('advantages of 0: guard/gradient-zero', async () => {
    const advantages = (rewards: readonly (readonly number[])[]) => rewards.map((row) => row.map(() => 0));
    const { alarms } = await grpoAlarms(await startTraining(service), { advantages, steps: 3 });
    expect(grave(alarms)).toEqual(['guard/gradient-zero']);
  });

  test('rewards a thousand times as high from one step on: guard/gradient-exploding', async () => {
    let calls = 0;
    const advantages = (rewards: readonly (readonly number[])[]) => {
      calls += 1;
      return rewards.map((row) => row.map((each, i) => (each - 0.5 + (i % 2) * 0.1) * (calls > 6 ? 1000 : 1)));
    };
    const { alarms } = await grpoAlarms(await startTraining(service), { advantages, steps: 8 });
    expect(grave(alarms)).toEqual(['guard/gradient-exploding']);
  });

  test('advantages that overflow: guard/gradient-not-finite ends the run', async () => {
    const advantages = (rewards: readonly (readonly number[])[]) =>
      rewards.map((row) => row.map((_, i) => (i % 2 === 0 ? 3e38 : -3e38)));
    const { alarms, error } = await grpoAlarms(await startTraining(service), { advantages });
    expect(grave(alarms)).toEqual(['guard/gradient-not-finite']);
    expect(error).toMatchObject({
      code: 'guard_stopped',
      details: { alarm: 'guard/gradient-not-finite', page: 'docs/guides/guard/gradient-not-finite.md' },
    });
  });
});

describe('the data', () => {
  const numbers = (values: ArrayLike<unknown>): number[] => Array.from(values, Number);
  type Datum = ReturnType<typeof rlDatum>;
  const withInputs = (datum: Datum, inputs: Partial<Datum['lossFnInputs']>): Datum => ({
    ...datum,
    lossFnInputs: { ...datum.lossFnInputs, ...inputs },
  });

  test('weights of 0: guard/mask-empty', async () => {
    const data = (all: readonly Datum[]) =>
      all.map((datum) => withInputs(datum, { weights: numbers(datum.lossFnInputs.weights).map(() => 0) }));
    const alarms = await handLoop({ training: await startTraining(service), steps: 2, data });
    expect(grave(alarms)).toEqual(['guard/mask-empty']);
    expect(alarms.at(-1)).toMatchObject({ level: 'stop', step: 1 });
  });

  test('weights of 1 on the whole sequence: guard/mask-prompt', async () => {
    const data = (all: readonly Datum[]) =>
      all.map((datum) => withInputs(datum, { weights: numbers(datum.lossFnInputs.weights).map(() => 1) }));
    const alarms = await handLoop({ training: await startTraining(service), steps: 2, data });
    expect(grave(alarms)).toEqual(['guard/mask-prompt']);
  });

  test('targets that are the inputs themselves: guard/shifted-datum', async () => {
    const data = (all: readonly Datum[]) =>
      all.map((datum) => withInputs(datum, { targetTokens: numbers(datum.modelInput) }));
    const alarms = await handLoop({ training: await startTraining(service), steps: 2, data });
    expect(grave(alarms)).toEqual(['guard/shifted-datum']);
  });

  test('weights beside the inputs instead of the targets: guard/shifted-datum', async () => {
    const data = (all: readonly Datum[]) =>
      all.map((datum) => withInputs(datum, { weights: [0, ...numbers(datum.lossFnInputs.weights).slice(0, -1)] }));
    const alarms = await handLoop({ training: await startTraining(service), steps: 2, data });
    expect(grave(alarms)).toEqual(['guard/shifted-datum']);
  });

  test('answers that were decoded and encoded again: guard/retokenized', async () => {
    training = await startTraining(service);
    const tokenizer = await training.getTokenizer();
    const data = (all: readonly Datum[]) =>
      all.map(({ modelInput, lossFnInputs }) => {
        const whole = [...numbers(modelInput), numbers(lossFnInputs.targetTokens).at(-1)!];
        const begin = numbers(lossFnInputs.weights).indexOf(1) + 1;
        const tokens = tokenizer.encode(tokenizer.decode(whole.slice(begin)) || '0');
        const logprobs = tokens.map((_, i) => numbers(lossFnInputs.logprobs)[begin - 1 + i] ?? -1);
        return rlDatum({ prompt: whole.slice(0, begin), sequence: { tokens, logprobs }, advantage: 0.1 });
      });
    expect(grave(await handLoop({ training, steps: 2, data }))).toEqual(['guard/retokenized']);
  });

  test('loss on what a tool said: guard/tool-results-trained', async () => {
    training = await startTraining(service);
    const tokenizer = await training.getTokenizer();
    const sampler = await training.saveWeightsAndGetSamplingClient();
    const prompt = tokenizer.encode('27+58=');
    const result = tokenizer.encode('12+34=');
    const first = (await sampler.sample(prompt, { numSamples: 1, maxTokens: 4, seed: 1 })).sequences[0]!;
    const { sequences } = await sampler.sample([...prompt, ...first.tokens, ...result], { maxTokens: 4, seed: 2 });
    const second = sequences[0]!;
    const tokens = [...first.tokens, ...result, ...second.tokens];
    const logprobs = [...first.logprobs, ...result.map(() => 0), ...second.logprobs];
    const data = [rlDatum({ prompt, sequence: { tokens, logprobs }, advantage: 1 })];
    const pass = training.forwardBackward(data, 'importance_sampling');
    const [{ outputs }, update] = await Promise.all([pass, training.optimStep({ learningRate: 1e-3 })]);
    const parts = [
      { kind: 'prompt', tokens: prompt },
      { kind: 'sampled', tokens: first.tokens },
      { kind: 'context', tokens: result },
      { kind: 'sampled', tokens: second.tokens },
    ] as const;
    const guard = createGuard();
    await expect(
      guard.observe({ step: 1, sampler, data, sources: [{ parts }], outputs, update }),
    ).rejects.toMatchObject({ code: 'guard_stopped', details: { alarm: 'guard/tool-results-trained' } });
    expect(grave(guard.alarms)).toEqual(['guard/tool-results-trained']);
  });
});

describe('rewards', () => {
  test('a grader that hardly tells answers apart any more: guard/std-collapse', async () => {
    const reward = (text: string, { answer }: ArithmeticProblem, step: number) =>
      0.5 + (text.trim() === answer ? 0.5 : -0.5) * (step > 5 ? 0.04 : 1);
    const alarms = await handLoop({ training: await startTraining(service), steps: 11, reward, learningRate: 1e-5 });
    expect(grave(alarms)).toEqual(['guard/std-collapse']);
  });

  test('one sample that is taken for eight: guard/duplicate-rollouts', async () => {
    const sample: HandOptions['sample'] = async (sampler, prompt, seed) => {
      const { sequences } = await sampler.sample(prompt, { maxTokens: 8, seed });
      return Array.from({ length: 8 }, () => sequences[0]!);
    };
    const alarms = await handLoop({ training: await startTraining(service), steps: 3, sample });
    expect(grave(alarms)).toEqual(['guard/duplicate-rollouts']);
  });

  test('a model that says one thing whatever the problem: guard/near-identical-samples', async () => {
    training = await startTraining(service);
    await teach(training, { steps: 45, answerOf: () => '9876' });
    const reward = (text: string) => (text.startsWith('9') ? 0.5 : 0);
    expect(grave(await handLoop({ training, steps: 4, reward, learningRate: 1e-5 }))).toEqual([
      'guard/near-identical-samples',
    ]);
  });

  test('a grader with a loophole from one step on: guard/reward-jump', async () => {
    const reward = (text: string, { answer }: ArithmeticProblem, step: number) =>
      Number(text.trim() === answer || (step > 6 && text.length > 0));
    const problems = sums.problems({ split: 'rl', count: 4, seed: 2 });
    const problemOf = (_: number, group: number) => problems[group]!;
    const options = { training: await startTraining(service), steps: 7, learningRate: 1e-5, problemOf };
    const alarms = await handLoop({ ...options, reward });
    expect(grave(alarms)).toEqual(['guard/reward-jump']);
  });

  test('a reward for length: guard/length-exploitation', async () => {
    training = await startTraining(service);
    await teach(training, { steps: 12, answerOf: (i) => '0123456789'.slice(0, 2 + (i % 6)) });
    const reward = (text: string) => text.length / 16;
    const options = {
      training,
      steps: 13,
      maxTokens: 16,
      learningRate: 5e-3,
      problemOf: (_: number, g: number) => loopProblems[g]!,
    };
    expect(grave(await handLoop({ ...options, reward }))).toEqual(['guard/length-exploitation']);
  });

  test('a reward for something else than what is measured on held-out problems: guard/held-out-falls', async () => {
    training = await startTraining(service);
    const tokenizer = await training.getTokenizer();
    const problems = sums.problems({ split: 'held-out', count: 100, seed: 1 });
    const change: HandOptions['change'] = async (facts) => {
      if (facts.step % 3 !== 1) return facts;
      const sampler = await training.saveWeightsAndGetSamplingClient();
      const { accuracy, interval, n } = await evaluate(sampler, {
        environment: sums,
        tokenizer,
        problems,
        maxTokens: 8,
      });
      const metrics = { 'validation/accuracy': accuracy, 'validation/low': interval.low, 'validation/n': n };
      return { ...facts, validation: { step: facts.step, metrics } };
    };
    const reward = (text: string, { answer }: ArithmeticProblem) => Number(text.trim() !== answer);
    const alarms = await handLoop({ training, steps: 7, reward, change, learningRate: 2e-3 });
    expect(grave(alarms)).toEqual(['guard/held-out-falls']);
  });
});

describe('reference and learning rate', () => {
  test('one step that goes much too far: guard/kl-spike', async () => {
    training = await startTraining(service);
    const scorer = await service.createSamplingClient({ baseModel: 'loopwright-tiny' });
    let n = 0;
    const wild = trainerWith(training, {
      optimStep: (options) =>
        training.optimStep({ ...options, ...(++n === 5 && { learningRate: 0.01, loraPlusLrRatio: 20 }) }),
    });
    const { alarms } = await grpoAlarms(wild, { steps: 6, reference: { scorer }, learningRate: 2e-4 });
    expect(grave(alarms)).toEqual(['guard/kl-spike']);
  });

  test('a reference that follows the training session: guard/kl-zero', async () => {
    training = await startTraining(service);
    let newest: SamplingClient | undefined;
    const follows = trainerWith(training, {
      saveWeightsAndGetSamplingClient: async (options) =>
        (newest = await training.saveWeightsAndGetSamplingClient(options)),
    });
    const scorer: Scorer = { computeLogprobs: (...call) => newest!.computeLogprobs(...call) };
    const { alarms } = await grpoAlarms(follows, { steps: 7, reference: { scorer } });
    expect(grave(alarms)).toEqual(['guard/kl-zero']);
  });

  test('a learning rate of full fine-tuning for LoRA, and the other way round: guard/learning-rate', async () => {
    const low = await grpoAlarms(await startTraining(service), { learningRate: 1e-6 });
    expect(grave(low.alarms)).toEqual(['guard/learning-rate']);
    const full = await service.createTrainingClient({ trainingType: 'full', baseModel: 'loopwright-tiny' });
    const guard = { training: 'full' } as const;
    const high = await grpoAlarms(full, { learningRate: 1e-3, steps: 1, guard });
    await full.close();
    expect(grave(high.alarms)).toEqual(['guard/learning-rate']);
  });
});

describe('rows and resume', () => {
  const problems = sums.problems({ split: 'rl', count: 8, seed: 3 });

  test('a row that is in the data twice: guard/rows-twice', async () => {
    const doubled = [...problems.slice(0, 7), problems[2]!];
    const { alarms } = await grpoAlarms(await startTraining(service), { problems: doubled, steps: 2 });
    expect(grave(alarms)).toEqual(['guard/rows-twice']);
  });

  test('a reader that skips a row: guard/rows-lost', async () => {
    const order = [0, 1, 2, 3, 4, 5, 7, 0, 1, 2, 3, 4];
    const index = (step: number, g: number) => order[(step - 1) * 4 + g]!;
    const change: HandOptions['change'] = (facts) => ({
      ...facts,
      rows: {
        keys: [0, 1, 2, 3].map((g) => problems[index(facts.step, g)]!.id),
        epochs: [0, 1, 2, 3].map((g) => ((facts.step - 1) * 4 + g < 7 ? 0 : 1)),
        of: 8,
      },
    });
    const problemOf = (step: number, g: number) => problems[index(step, g)]!;
    const alarms = await handLoop({ training: await startTraining(service), steps: 3, change, problemOf });
    expect(grave(alarms)).toEqual(['guard/rows-lost']);
  });

  test('a resume from weights alone: guard/resume-without-optimizer, with optimizer none', async () => {
    training = await startTraining(service);
    await handLoop({ training, steps: 2 });
    const { modelPackageArn } = await training.saveState();
    const bare = await service.createTrainingClientFromState({ modelPackageArn });
    expect(grave(await handLoop({ training: bare, steps: 2, firstStep: 3 }))).toEqual([
      'guard/resume-without-optimizer',
    ]);
    await bare.close();
    const whole = await service.createTrainingClientFromStateWithOptimizer({ modelPackageArn });
    expect(grave(await handLoop({ training: whole, steps: 2, firstStep: 3 }))).toEqual([]);
    await whole.close();
  });
});

test('every alarm has a fault here that raises it', async () => {
  const text = await readFile(new URL(import.meta.url), 'utf8');
  for (const { name } of alarmRules) expect(text).toContain(`'${name}'`);
});
