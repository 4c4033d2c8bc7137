/** A small real run for faults: the bundled model, the embedded engine, sums; every part can be replaced by a broken one. */
import { LoopwrightError } from '@loopwright/protocol';
import {
  type Alarm,
  type ArithmeticProblem,
  arithmetic,
  centerRewards,
  type connect,
  createGuard,
  type GroupFacts,
  type GrpoOptions,
  type GuardOptions,
  rlDatum,
  runGrpo,
  type SampledTokens,
  type Sampler,
  type StepFacts,
  sftDatum,
  type Trainer,
} from 'loopwright';

export type Service = Awaited<ReturnType<typeof connect>>;
export type Training = Awaited<ReturnType<Service['createLoraTrainingClient']>>;

/** Sums that the bundled model is right about now and then. */
export const sums = arithmetic({ operations: ['+'], maxOperand: 99 });

const open: Training[] = [];

/** Stands until `endTraining`: a server has a limit of live sessions. */
export async function startTraining(service: Service, seed = 1): Promise<Training> {
  const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 8, alpha: 16, seed });
  open.push(training);
  return training;
}

export async function endTraining(): Promise<void> {
  await Promise.all(open.splice(0).map((training) => training.close()));
}

/** The training client with some of its calls replaced. */
/** Those that the loop by hand takes, four a step. */
export const loopProblems = sums.problems({ split: 'rl', count: 200, seed: 1 });

export function trainerWith(training: Training, changes: Partial<Trainer>): Trainer {
  return {
    getTokenizer: () => training.getTokenizer(),
    forward: (...call) => training.forward(...call),
    forwardBackward: (...call) => training.forwardBackward(...call),
    forwardBackwardCustom: (...call) => training.forwardBackwardCustom(...call),
    optimStep: (...call) => training.optimStep(...call),
    saveWeightsAndGetSamplingClient: (...call) => training.saveWeightsAndGetSamplingClient(...call),
    ...changes,
  };
}

/** What is raised by `runGrpo`, in its order, and how the run ended. */
export async function grpoAlarms(
  training: Trainer,
  options: Partial<GrpoOptions<ArithmeticProblem>> = {},
): Promise<{ readonly alarms: readonly Alarm[]; readonly error: unknown }> {
  const alarms: Alarm[] = [];
  const guard: GuardOptions = { onAlarm: (alarm) => void alarms.push(alarm) };
  try {
    await runGrpo({
      ...{ training, environment: sums, steps: 4, groupsPerStep: 4, samplesPerGroup: 8, maxTokens: 8, seed: 1 },
      ...{ learningRate: 1e-3, onNotice: () => undefined, ...options },
      guard: { ...guard, ...(options.guard === false ? {} : options.guard) },
    });
    return { alarms, error: undefined };
  } catch (error) {
    return { alarms, error };
  }
}

export interface HandOptions {
  readonly training: Training;
  readonly steps: number;
  readonly guard?: GuardOptions;
  /** The sampler of a step; default: of the newest weights. */
  readonly samplerOf?: (step: number) => Promise<Sampler>;
  readonly learningRate?: number;
  readonly problemOf?: (step: number, group: number) => ArithmeticProblem;
  readonly reward?: (text: string, problem: ArithmeticProblem, step: number) => number;
  /** Changes what is told or sent at a step. */
  readonly change?: (facts: StepFacts) => StepFacts | Promise<StepFacts>;
  /** Before the step is trained. */
  readonly data?: (data: readonly ReturnType<typeof rlDatum>[], step: number) => readonly ReturnType<typeof rlDatum>[];
  readonly seedOf?: (step: number, group: number) => number;
  readonly firstStep?: number;
  readonly maxTokens?: number;
  /** Default: one request for the whole group. */
  readonly sample?: (sampler: Sampler, prompt: readonly number[], seed: number) => Promise<readonly SampledTokens[]>;
}

/** A loop as people write it, with a guard in it. */
export async function handLoop(options: HandOptions): Promise<readonly Alarm[]> {
  const { training, steps, learningRate = 1e-3, firstStep = 1, maxTokens = 8 } = options;
  const alarms: Alarm[] = [];
  const guard = createGuard({ onAlarm: (alarm) => void alarms.push(alarm), ...options.guard });
  const tokenizer = await training.getTokenizer();
  for (let step = firstStep; step < firstStep + steps; step++) {
    const sampler = (await options.samplerOf?.(step)) ?? (await training.saveWeightsAndGetSamplingClient());
    const groups = await Promise.all(
      [0, 1, 2, 3].map(async (g) => {
        const problem = options.problemOf?.(step, g) ?? loopProblems[(step * 4 + g) % 200]!;
        const prompt = tokenizer.encode(problem.question);
        const seed = options.seedOf?.(step, g) ?? step * 100 + g;
        const sequences =
          (await options.sample?.(sampler, prompt, seed)) ??
          (await sampler.sample(prompt, { numSamples: 8, maxTokens, seed })).sequences;
        const samples = sequences.map((sequence) => {
          const text = tokenizer.decode(sequence.tokens);
          const reward = options.reward?.(text, problem, step) ?? Number(text.trim() === problem.answer);
          return { ...sequence, reward };
        });
        return { prompt, samples } satisfies GroupFacts;
      }),
    );
    const advantages = centerRewards(groups.map(({ samples }) => samples.map(({ reward }) => reward)));
    const made = groups.flatMap(({ prompt, samples }, p) =>
      samples.map((sequence, s) => ({
        datum: rlDatum({ prompt, sequence, advantage: advantages[p]![s]! }),
        source: {
          parts: [
            { kind: 'prompt' as const, tokens: prompt },
            { kind: 'sampled' as const, tokens: sequence.tokens },
          ],
        },
      })),
    );
    const plain = made.map(({ datum }) => datum);
    const data = options.data?.(plain, step) ?? plain;
    const pass = training.forwardBackward(data, 'importance_sampling');
    const update = training.optimStep({ learningRate, weightDecay: 0, gradClipNorm: 1 });
    const [{ outputs }, updated] = await Promise.all([pass, update]);
    const facts: StepFacts = {
      ...{ step, groups, sampler, data, outputs, update: updated, learningRate },
      sources: made.map(({ source }) => source),
    };
    try {
      await guard.observe((await options.change?.(facts)) ?? facts);
    } catch (error) {
      if (LoopwrightError.isInstance(error) && error.code === 'guard_stopped') break;
      throw error;
    }
  }
  return alarms;
}

export interface TeachOptions {
  readonly steps: number;
  readonly answerOf: (index: number) => string;
}

/** Supervised steps on answers to the loop's first sums, right or not, with their end. */
export async function teach(training: Training, { steps, answerOf }: TeachOptions): Promise<void> {
  const tokenizer = await training.getTokenizer();
  const end = tokenizer.eosTokenIds.slice(0, 1);
  const data = loopProblems.slice(0, 24).map(({ question }, i) => {
    const completion = [...tokenizer.encode(answerOf(i)), ...end];
    return sftDatum({ prompt: tokenizer.encode(question), completion });
  });
  for (let step = 0; step < steps; step++) {
    const pass = training.forwardBackward(data, 'cross_entropy');
    await Promise.all([pass, training.optimStep({ learningRate: 5e-3 })]);
  }
}
