/**
 * A small run, GRPO or SFT, that dies or waits where it is told: `--die optim-step:3` kills its own process at the third call of that kind, `--hold` waits there for
 * a line on the standard input. At its end it prints what came of it as JSON.
 *
 *   node --import tsx test/resume/program.ts --kind grpo --run FOLDER --model DIR [--url URL] [--resume FOLDER] [--steps 6]
 */
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import {
  type Environment,
  type Problem,
  runGrpo,
  runSft,
  type SavedVersion,
  sftDatum,
  type Trainer,
  type TrainingRun,
  withTrainingRun,
} from 'loopwright';

const { values } = parseArgs({
  options: {
    kind: { type: 'string', default: 'grpo' },
    run: { type: 'string', default: 'run' },
    model: { type: 'string', default: '' },
    url: { type: 'string' },
    resume: { type: 'string' },
    steps: { type: 'string', default: '6' },
    rate: { type: 'string', default: '0.01' },
    die: { type: 'string' },
    hold: { type: 'string' },
  },
});
const steps = Number(values.steps);
const learningRate = Number(values.rate);

const reached = new Map<string, number>();

/** Somewhere between two durable effects of the run: it dies here, or says that it is here. @returns whether it is to wait */
function reach(point: string): boolean {
  const count = (reached.get(point) ?? 0) + 1;
  reached.set(point, count);
  if (values.die === `${point}:${count}`) {
    process.kill(process.pid, 'SIGKILL');
    for (;;); // the signal is on its way
  }
  if (values.hold !== `${point}:${count}`) return false;
  console.log(`held at ${point}`);
  return true;
}

async function at(point: string): Promise<void> {
  if (!reach(point)) return;
  await once(process.stdin, 'data');
  process.stdin.pause();
}

/** Points around the calls that change something. They are queued at once, as the loop means it: before one there is no waiting. */
function watch({ training }: TrainingRun): Trainer {
  const { optimStep, saveState } = training;
  const around =
    <A extends unknown[], R>(name: string, call: (...args: A) => PromiseLike<R>) =>
    async (...args: A): Promise<R> => {
      reach(name);
      const result = await call.apply(training, args);
      await at(`${name}-done`);
      return result;
    };
  return Object.assign(training, {
    optimStep: around('optim-step', optimStep),
    saveState: around('save-state', saveState),
  });
}

/** One is there twice, which the guard can only see by what it remembers. */
const problems: Problem[] = ['2+2=', '3+4=', '1+9=', '5+5=', '7+1=', '2+2='].map((question) => ({
  id: question,
  question,
  answer: '',
}));

/** Rewards that a model without any training earns now and then: answers of an even sum of characters. */
const environment: Environment = {
  name: 'even',
  draw: (random) => random.pick(problems),
  async grade({ text }) {
    await at('grade');
    const sum = [...text].reduce((total, char) => total + char.charCodeAt(0), 0);
    return { status: 'ok', reward: sum % 2 === 0 ? 1 : 0 };
  },
};

/** Alarms are kept in the run folder, and not printed. */
const guard = { onAlarm: () => {} };

async function grpo(parts: TrainingRun): Promise<void> {
  const { run, checkpoints, signal } = parts;
  await runGrpo({
    ...{ training: watch(parts), environment, problems, steps, checkpoints, signal, learningRate },
    ...{ groupsPerStep: 3, samplesPerGroup: 4, maxTokens: 6, seed: 5, gradClipNorm: 1, guard },
    validation: { problems: problems.slice(0, 2), everySteps: 3 },
    onValidation: run.onValidation,
    onStep: async (step) => {
      await run.onStep(step);
      console.log(`step ${step.step}`);
      await at('kept');
    },
  });
}

async function sft(parts: TrainingRun): Promise<void> {
  const { run, checkpoints, signal, training } = parts;
  const tokenizer = await training.getTokenizer();
  const data = [...'abcdefghij'].map((letter) =>
    sftDatum({ prompt: tokenizer.encode(`${letter}:`), completion: tokenizer.encode(letter.toUpperCase().repeat(4)) }),
  );
  await runSft({
    ...{ training: watch(parts), data: data.slice(2), heldOut: data.slice(0, 2), batchSize: 3, epochs: steps / 3 },
    ...{ seed: 5, learningRate, checkpoints, signal, guard },
    onStep: async (step) => {
      await run.onStep(step);
      console.log(`step ${step.step}`);
      await at('kept');
    },
  });
}

await withTrainingRun(
  {
    ...{ folder: values.run, resume: values.resume, checkpointEvery: 2, seeds: { seed: 5 }, data: { train: problems } },
    config: { steps, learningRate, kind: values.kind },
    connection: values.url === undefined ? { models: { tiny: values.model } } : { url: values.url },
    start: (service) => service.createLoraTrainingClient({ baseModel: 'tiny', rank: 4, seed: 5 }),
  },
  async (parts) => {
    const { service, training, run } = parts;
    const { save } = parts.checkpoints;
    const checkpoints = {
      ...parts.checkpoints,
      async save(...args: Parameters<typeof save>): Promise<void> {
        await save(...args);
        await at('recorded');
      },
    };
    await (values.kind === 'sft' ? sft : grpo)({ ...parts, checkpoints });
    await at('trained');
    const hashes = async ({ modelPackageArn }: SavedVersion): Promise<string[]> => {
      const { files } = await service.registry.get(modelPackageArn);
      return files.map(({ path, sha256 }) => `${path} ${sha256}`).sort();
    };
    const weights = await hashes(await training.saveWeightsForSampler());
    const state = await hashes(await training.saveState());
    const sessions = await service.listSessions();
    const others = sessions.filter(({ name, status }) => name !== training.name && status === 'Running').length;
    console.log(JSON.stringify({ folder: run.folder, weights, state, others }));
  },
);
process.stdin.destroy(); // a process that was interrupted in a hold doesn't wait for it
