/**
 * Grade-school maths in two stages: supervised fine-tuning on worked answers, then group relative policy optimisation (arXiv:2402.03300) from the version that
 * the first stage saved. Judged on problems of the test set as the model comes, after the first stage and after the second.
 *
 * Run: npx tsx recipes/gsm8k/train.ts [--data FOLDER] [--settings small|big] [--model ID|DIR] [--url URL] [--max-steps 3] [--seed 1] [--run runs/gsm8k]
 */
import { fileURLToPath } from 'node:url';
import {
  accuracyText,
  connect,
  createTerminalView,
  evaluate,
  recipeOptions,
  runGrpo,
  runSft,
  type Sampler,
  sftDatumFromMessages,
  testGrader,
  withRun,
} from 'loopwright';
import { configs } from './config.js';
import { problemSets, problemsOf } from './data.js';
import { environmentOf, instruction, taskOf } from './task.js';

const optionsWith = (steps: number) =>
  recipeOptions({
    ...{ name: 'gsm8k', model: 'HuggingFaceTB/SmolLM2-135M-Instruct', steps },
    notResumable: 'its first stage keeps no checkpoints',
    own: {
      data: 'folder with train.jsonl and test.jsonl of GSM8K (default: problems made by rule)',
      settings: 'small (the default) or big: see config.ts',
      'sft-steps': 'steps of the first stage (default: as the settings say)',
    },
  });
const { settings = 'small' } = optionsWith(1).own; // they decide how many steps are the default
if (settings !== 'small' && settings !== 'big') throw new Error(`--settings: expected small or big, got ${settings}`);
const config = configs[settings];
const { rank, alpha, maxTokens, sft, rl } = config;
const { baseModel, connection, steps, seed, folder, own } = optionsWith(rl.steps);
const sftSteps = Number(own['sft-steps'] ?? sft.steps);

const sets = await problemSets(own.data);
const train = await problemsOf(sets.train, { count: Number.MAX_SAFE_INTEGER, seed });
const heldOut = await problemsOf(sets.test, { count: config.heldOut, seed: 0 });
const task = taskOf(train, heldOut);
const environment = environmentOf(train);
const { result: graderGate } = await testGrader(task); // a grader that fails refuses the run

await using service = await connect(connection);
const first = await service.createLoraTrainingClient({ baseModel, rank, alpha, seed });
const tokenizer = await first.getTokenizer();

const record = {
  ...{
    folder,
    config: { ...config, baseModel, steps, sftSteps },
    seeds: { seed },
    data: { train, heldOut },
    tokenizer,
  },
  task: fileURLToPath(new URL('task.ts', import.meta.url)), // so that the run knows the version of its grader
  usage: () => service.usage(),
};
await withRun(record, async (run) => {
  async function judge(when: string, sampler: Sampler) {
    const evaluation = await evaluate(sampler, { environment, tokenizer, problems: heldOut, maxTokens });
    console.log(`${when}: ${accuracyText(evaluation)}, ${evaluation.unparsed} without a number`);
    return evaluation;
  }
  const { accuracy, n } = await judge('as it comes', await first.saveWeightsAndGetSamplingClient());
  await run.step(0, { 'validation/accuracy': accuracy, 'validation/n': n }, 'base');
  using view = createTerminalView({ stream: process.stdout, title: task.name });

  // Stage 1: the form of a worked answer.
  const datums = train.map(({ question, answer }) =>
    sftDatumFromMessages(tokenizer, [
      { role: 'user', content: `${question}\n${instruction}` },
      { role: 'assistant', content: answer },
    ]),
  );
  const rows = datums.filter(({ modelInput }) => modelInput.length <= sft.maxRowTokens);
  console.log(
    `stage 1: ${rows.length} worked answers, ${datums.length - rows.length} longer than ${sft.maxRowTokens} tokens left out`,
  );
  await runSft({
    ...{
      training: first,
      data: rows,
      seed,
      batchSize: sft.batchSize,
      learningRate: sft.learningRate,
      maxSteps: sftSteps,
    },
    epochs: Math.ceil((sftSteps * sft.batchSize) / rows.length),
    ...{ guard: { onAlarm: () => {} }, onNotice: view.onNotice }, // the view shows alarms with their step
    onStep: async (step) => {
      await run.step(step.step, step.metrics, 'sft');
      view.onStep(step);
    },
  });
  const { modelPackageArn: learnt } = await first.saveState({
    description: `${task.name}, stage 1, ${sftSteps} steps`,
  });
  console.log(`stage 1: saved ${learnt}`);
  await run.validation(0, await judge('after stage 1', await first.saveWeightsAndGetSamplingClient()));

  // Stage 2: a session of its own from that version, with an optimizer that begins anew.
  const training = await service.createTrainingClientFromState({ modelPackageArn: learnt });
  const { groupsPerStep, groupSize: samplesPerGroup, learningRate } = rl;
  const { sampler, metrics } = await runGrpo({
    ...{ training, tokenizer, environment, problems: train, graderGate },
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
  console.log(
    `stage 2: ${dead} of ${steps * groupsPerStep} groups dead: all right or all wrong, so they teach nothing`,
  );
  await run.validation(steps, await judge('after stage 2', sampler));
  const { modelPackageArn } = await training.saveWeightsForSampler({ description: `${task.name}, ${steps} steps` });
  console.log(`adapter  ${modelPackageArn}`);
  console.log(`run      ${run.folder}`);
});
