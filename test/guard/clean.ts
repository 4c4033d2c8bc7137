/** Ten runs without a fault, of every kind of loop: how many alarms they raise. */
import {
  type Alarm,
  type ArithmeticProblem,
  type CustomDatum,
  type CustomLoss,
  connect,
  createGuard,
  createRandom,
  dpo,
  type GrpoOptions,
  kto,
  ktoData,
  preferenceData,
  runGrpo,
  runSft,
  sftDatum,
  withReference,
} from 'loopwright';
import { secondTry } from '../../recipes/second-try/environment.js';
import { endTraining, type Service, startTraining, sums, type Training } from './bench.js';

export interface CleanRun {
  readonly name: string;
  readonly steps: number;
  readonly alarms: readonly Alarm[];
}

interface Parts {
  readonly service: Service;
  readonly training: Training;
  readonly seed: number;
  readonly steps: number;
  readonly onAlarm: (alarm: Alarm) => void;
}

type Recipe = (parts: Parts) => Promise<unknown>;

const quiet = { onNotice: () => undefined };
const size = { groupsPerStep: 8, samplesPerGroup: 8, maxTokens: 8 };

const grpo =
  (options: Partial<GrpoOptions<ArithmeticProblem>> = {}): Recipe =>
  ({ training, seed, steps, onAlarm }) =>
    runGrpo({
      ...{ training, environment: sums, steps, seed, ...size, learningRate: 1e-3, ...quiet },
      ...options,
      guard: { onAlarm },
    });

const overReference: Recipe = async (parts) => {
  const scorer = await parts.service.createSamplingClient({ baseModel: 'loopwright-tiny' });
  const problems = sums.problems({ split: 'rl', count: 64, seed: parts.seed });
  const heldOut = sums.problems({ split: 'held-out', count: 60, seed: parts.seed });
  const reference = { scorer, klCoefficient: 0.05 };
  return grpo({ problems, reference, validation: { problems: heldOut, everySteps: 5 } })(parts);
};

const episodes: Recipe = ({ training, seed, steps, onAlarm }) =>
  runGrpo({
    ...{ training, environment: secondTry, maxTurns: 2, steps, seed, ...size, learningRate: 1e-3, ...quiet },
    guard: { onAlarm },
  });

const sft: Recipe = async ({ training, seed, steps, onAlarm }) => {
  const tokenizer = await training.getTokenizer();
  const end = tokenizer.eosTokenIds.slice(0, 1);
  const rows = sums
    .problems({ split: 'rl', count: 4 * steps + 40, seed })
    .map(({ question, answer }) =>
      sftDatum({ prompt: tokenizer.encode(question), completion: [...tokenizer.encode(answer), ...end] }),
    );
  const [heldOut, data] = [rows.slice(0, 40), rows.slice(40)];
  const validation = { everySteps: 5 };
  return runSft({
    ...{ training, data, heldOut, validation, batchSize: 8, epochs: 2, learningRate: 1e-3, seed, ...quiet },
    guard: { onAlarm },
  });
};

interface Preference<D extends CustomDatum> {
  readonly data: readonly (readonly D[])[];
  readonly loss: CustomLoss<D>;
}

/** A loop of one's own over data of which each entry is a row. */
async function preferences<D extends CustomDatum>(
  { training, seed, steps, onAlarm }: Parts,
  { data, loss }: Preference<D>,
): Promise<void> {
  const guard = createGuard({ onAlarm });
  const random = createRandom(seed);
  const perStep = 8;
  let rows: readonly number[] = [];
  for (let step = 1; step <= steps; step++) {
    if (rows.length < perStep) rows = random.shuffle(data.map((_, i) => i));
    const keys = rows.slice(0, perStep);
    rows = rows.slice(perStep);
    const batch = keys.flatMap((i) => data[i]!);
    const learningRate = 5e-4;
    const pass = training.forwardBackwardCustom(batch, loss);
    const [{ metrics, outputs }, update] = await Promise.all([pass, training.optimStep({ learningRate })]);
    await guard.observe({
      ...{ step, metrics, data: batch, outputs, update, learningRate },
      rows: { keys, of: data.length },
    });
  }
}

/** A right answer and a wrong one to each sum. */
async function answersTo({ training, seed }: Parts) {
  const tokenizer = await training.getTokenizer();
  const end = tokenizer.eosTokenIds.slice(0, 1);
  const encode = (value: number) => [...tokenizer.encode(String(value)), ...end];
  return sums.problems({ split: 'rl', count: 64, seed }).map(({ question, answer }, i) => ({
    prompt: tokenizer.encode(question),
    right: encode(Number(answer)),
    wrong: encode(Number(answer) + 1 + (i % 9)),
  }));
}

function inRows<T>(all: readonly T[], width: number): T[][] {
  return Array.from({ length: all.length / width }, (_, i) => all.slice(i * width, (i + 1) * width));
}

const withDpo: Recipe = async (parts) => {
  const base = await parts.service.createSamplingClient({ baseModel: 'loopwright-tiny' });
  const pairs = (await answersTo(parts)).map(({ prompt, right, wrong }) => ({
    ...{ prompt, chosen: right, rejected: wrong },
  }));
  const data = inRows(await withReference(preferenceData(pairs), base), 2);
  return preferences(parts, { data, loss: dpo({ beta: 0.1 }) });
};

const withKto: Recipe = async (parts) => {
  const base = await parts.service.createSamplingClient({ baseModel: 'loopwright-tiny' });
  const examples = (await answersTo(parts)).map(({ prompt, right, wrong }, i) => ({
    ...{ prompt, completion: i % 2 === 0 ? right : wrong, desirable: i % 2 === 0 },
  }));
  const data = inRows(await withReference(ktoData(examples), base), 2);
  return preferences(parts, { data, loss: kto({ beta: 0.1 }) });
};

export const cleanRuns: readonly { readonly name: string; readonly seed: number; readonly recipe: Recipe }[] = [
  { name: 'GRPO', seed: 1, recipe: grpo() },
  { name: 'GRPO, ppo, lengths divided', seed: 2, recipe: grpo({ loss: 'ppo', lengthNormalization: 'sequence' }) },
  { name: 'GRPO, maxStepsOffPolicy 3', seed: 3, recipe: grpo({ maxStepsOffPolicy: 3 }) },
  {
    name: 'GRPO, maxStepsOffPolicy 3, parts of 2 groups',
    seed: 4,
    recipe: grpo({ maxStepsOffPolicy: 3, groupsPerPass: 2 }),
  },
  { name: 'GRPO, a list of problems, KL to the base, validation', seed: 5, recipe: overReference },
  { name: 'GRPO over episodes of two turns', seed: 6, recipe: episodes },
  { name: 'SFT', seed: 7, recipe: sft },
  { name: 'SFT', seed: 8, recipe: sft },
  { name: 'DPO, a loop of its own', seed: 9, recipe: withDpo },
  { name: 'KTO, a loop of its own', seed: 10, recipe: withKto },
];

export async function runClean(
  { name, seed, recipe }: (typeof cleanRuns)[number],
  { service, steps }: { readonly service: Service; readonly steps: number },
): Promise<CleanRun> {
  const alarms: Alarm[] = [];
  const training = await startTraining(service, seed);
  await recipe({ service, training, seed, steps, onAlarm: (alarm) => void alarms.push(alarm) });
  await endTraining();
  return { name, steps, alarms };
}

/** `npx tsx test/guard/clean.ts [STEPS] [SEEDS]` prints the table of the results; SEEDS is added to each seed. */
if (process.argv[1]?.endsWith('guard/clean.ts') === true) {
  const [steps = 20, seeds = 0] = process.argv.slice(2).map(Number);
  await using service = await connect();
  for (const run of cleanRuns) {
    const seed = run.seed + seeds;
    const { name, alarms } = await runClean({ ...run, seed }, { service, steps });
    const of = (level: string) => alarms.filter((alarm) => alarm.level === level);
    const counts = ['stop', 'warn', 'note'].map((level) => of(level).length).join(' | ');
    const names = alarms.map((alarm) => `\`${alarm.name}\` at step ${alarm.step}: ${alarm.seen}`).join('; ');
    console.log(`| ${name} | ${seed} | ${steps} | ${counts} | ${names} |`);
  }
}
