/**
 * Grade-school maths in two stages: supervised fine-tuning on worked answers, then group relative policy optimisation (arXiv:2402.03300) from the version that
 * the first stage saved. Judged on problems of the test set as the model comes, after the first stage and after the second. Each stage is a run of its own,
 * `runs/gsm8k-sft` and `runs/gsm8k`, and either can be gone on with.
 *
 * Run: npx tsx recipes/gsm8k/train.ts [--data FOLDER] [--settings small|big] [--model ID|DIR] [--url URL] [--max-steps 3] [--seed 1] [--run runs/gsm8k]
 * [--resume runs/gsm8k-sft|runs/gsm8k]
 */
import { fileURLToPath } from 'node:url';
import {
  accuracyText,
  createTerminalView,
  type Evaluation,
  evaluate,
  type Problem,
  readCheckpoints,
  readRun,
  recipeOptions,
  runGrpo,
  runSft,
  type Sampler,
  type ServiceConnection,
  sftDatumFromMessages,
  type TrainingRun,
  testGrader,
  withTrainingRun,
} from 'loopwright';
import { configs } from './config.js';
import { problemSets, problemsOf } from './data.js';
import { environmentOf, instruction, taskOf } from './task.js';

const optionsWith = (steps: number) =>
  recipeOptions({
    ...{ name: 'gsm8k', model: 'HuggingFaceTB/SmolLM2-135M-Instruct', steps },
    own: {
      data: 'folder with train.jsonl and test.jsonl of GSM8K (default: problems made by rule)',
      settings: 'small (the default) or big: see config.ts',
      'sft-steps': 'steps of the first stage (default: as the settings say)',
    },
  });
const { settings = 'small' } = optionsWith(1).own; // they decide how many steps are the default
if (settings !== 'small' && settings !== 'big') throw new Error(`--settings: expected small or big, got ${settings}`);
const { sft, rl, ...config } = configs[settings];
const { rank, alpha, maxTokens } = config;
const { baseModel, steps, seed, place, own } = optionsWith(rl.steps);
const sftSteps = Number(own['sft-steps'] ?? sft.steps);

const sets = await problemSets(own.data);
const train = await problemsOf(sets.train, { count: Number.MAX_SAFE_INTEGER, seed });
const heldOut = await problemsOf(sets.test, { count: config.heldOut, seed: 0 });
const task = taskOf(train, heldOut);
const environment = environmentOf(train);
const { result: graderGate } = await testGrader(task); // a grader that fails refuses the run

const common = {
  ...place,
  ...{ seeds: { seed }, data: { train, heldOut } },
  task: fileURLToPath(new URL('task.ts', import.meta.url)), // so that the run knows the version of its grader
};

type Judge = (when: string, sampler: Sampler) => Promise<Evaluation<Problem>>;

async function judgeOf({ training, signal }: TrainingRun): Promise<Judge> {
  const tokenizer = await training.getTokenizer();
  return async (when, sampler) => {
    const evaluation = await evaluate(sampler, { environment, tokenizer, problems: heldOut, maxTokens, signal });
    console.log(`${when}: ${accuracyText(evaluation)}, ${evaluation.unparsed} without a number`);
    return evaluation;
  };
}

/** The form of a worked answer. @returns what it saved */
async function stage1(parts: TrainingRun): Promise<{ learnt: string; after: Evaluation<Problem> }> {
  const { training, run, checkpoints, signal, afterStep } = parts;
  const [tokenizer, judge] = [await training.getTokenizer(), await judgeOf(parts)];
  if (afterStep === 0)
    await run.validation(0, await judge('as it comes', await training.saveWeightsAndGetSamplingClient()));
  const datums = train.map(({ question, answer }) =>
    sftDatumFromMessages(tokenizer, [
      { role: 'user', content: `${question}\n${instruction}` },
      { role: 'assistant', content: answer },
    ]),
  );
  const { batchSize, learningRate, maxRowTokens } = sft;
  const data = datums.filter(({ modelInput }) => modelInput.length <= maxRowTokens);
  const tooLong = datums.length - data.length;
  console.log(`stage 1: ${data.length} worked answers, ${tooLong} longer than ${maxRowTokens} tokens left out`);
  using view = createTerminalView({ stream: process.stdout, title: `${task.name}, stage 1` });
  const epochs = Math.ceil((sftSteps * batchSize) / data.length);
  await runSft({
    ...{ training, data, seed, batchSize, learningRate, epochs, maxSteps: sftSteps, checkpoints, signal },
    ...{ guard: { onAlarm: () => {} }, onNotice: view.onNotice }, // the view shows alarms with their step
    onStep: async (step) => {
      await run.onStep(step);
      view.onStep(step);
    },
  });
  view.close();
  const description = `${task.name}, stage 1, ${sftSteps} steps`;
  const { modelPackageArn: learnt } = await training.saveState({ description });
  console.log(`stage 1: saved ${learnt}`);
  const after = await judge('after stage 1', await training.saveWeightsAndGetSamplingClient());
  await run.validation(sftSteps, after);
  return { learnt, after };
}

/** By reward. @param before what stage 1 came to, where it is known */
async function stage2(parts: TrainingRun, before: Evaluation<Problem> | undefined): Promise<void> {
  const { training, run, checkpoints, signal, afterStep } = parts;
  const [tokenizer, judge] = [await training.getTokenizer(), await judgeOf(parts)];
  if (afterStep === 0) {
    const measured = before ?? (await judge('after stage 1', await training.saveWeightsAndGetSamplingClient()));
    await run.validation(0, measured);
  }
  using view = createTerminalView({ stream: process.stdout, title: `${task.name}, stage 2` });
  const { groupsPerStep, groupSize: samplesPerGroup, learningRate } = rl;
  const { sampler, metrics } = await runGrpo({
    ...{ training, tokenizer, environment, problems: train, graderGate, checkpoints, signal },
    ...{ steps, seed, groupsPerStep, samplesPerGroup, maxTokens, learningRate },
    ...{ guard: { onAlarm: () => {} }, onNotice: view.onNotice }, // the view shows alarms with their step
    fixedSamples: { problems: heldOut, count: 5 },
    onFixedSamples: run.onFixedSamples,
    onStep: async (step) => {
      await run.onStep(step);
      view.onStep(step);
    },
  });
  view.close();
  const dead = metrics.reduce((sum, each) => sum + (each['groups/dead'] ?? 0), 0);
  const groups = metrics.length * groupsPerStep;
  console.log(`stage 2: ${dead} of ${groups} groups dead: all right or all wrong, so they teach nothing`);
  await run.validation(steps, await judge('after stage 2', sampler));
  const { modelPackageArn } = await training.saveWeightsForSampler({ description: `${task.name}, ${steps} steps` });
  console.log(`adapter  ${modelPackageArn}`);
  console.log(`run      ${run.folder}`);
}

/** Where `--resume` goes on: within stage 1, between the two, or within stage 2. */
async function resumedAt(folder: string): Promise<{ readonly stage: 1 | 2; readonly from: string | undefined }> {
  const { record } = await readRun(folder);
  const config = record.config as { stage?: string; from?: string }; // true: of the runs below
  if (config.stage === 'rl') return { stage: 2, from: config.from };
  const [last] = (await readCheckpoints(folder)).checkpoints;
  const isDone = record.status === 'done' && last?.step === sftSteps;
  return { stage: 1, from: isDone ? last.modelPackageArn : undefined };
}

const { resume, ...anew } = common;
const at = resume === undefined ? undefined : await resumedAt(resume);
const first =
  at?.from === undefined
    ? await withTrainingRun(
        {
          ...{ ...anew, resume, folder: `${place.folder}-sft` },
          config: { stage: 'sft', ...config, ...sft, baseModel, steps: sftSteps },
          start: (service: ServiceConnection) => service.createLoraTrainingClient({ baseModel, rank, alpha, seed }),
        },
        stage1,
      )
    : { learnt: at.from, after: undefined };

// A session of its own from what stage 1 saved, with an optimizer that begins anew. Without it Ctrl-C has ended stage 1, and has said how to go on.
if (first !== undefined) {
  const { learnt: from, after } = first;
  await withTrainingRun(
    {
      ...{ ...anew, resume: at?.stage === 2 ? resume : undefined },
      config: { stage: 'rl', ...config, ...rl, baseModel, steps, from },
      start: (service: ServiceConnection) => service.createTrainingClientFromState({ modelPackageArn: from }),
    },
    (parts) => stage2(parts, after),
  );
}
