/**
 * Arithmetic: group relative policy optimisation on sums and differences, judged before and after on problems that are never
 * trained on.
 *
 * Run: npx tsx recipes/arithmetic/train.ts [--model ID|DIR] [--url URL] [--max-steps 40] [--seed 1] [--run runs/arithmetic]
 * [--resume runs/arithmetic]
 */
import { fileURLToPath } from 'node:url';
import {
  accuracyText,
  createTerminalView,
  evaluate,
  recipeOptions,
  runGrpo,
  type Sampler,
  type ServiceConnection,
  testGrader,
  withTrainingRun,
} from 'loopwright';
import { config } from './config.js';
import { environment, heldOut, task, train } from './task.js';

const { baseModel, steps, seed, place } = recipeOptions({ name: task.name, steps: config.steps });
const { rank, alpha, groupsPerStep, groupSize: samplesPerGroup, maxTokens, learningRate } = config;

const { result: graderGate } = await testGrader(task); // a grader that fails refuses the run

const record = {
  ...{ ...place, config: { ...config, baseModel, steps }, seeds: { seed }, data: { train, heldOut } },
  task: fileURLToPath(new URL('task.ts', import.meta.url)), // so that the run knows the version of its grader
  start: (service: ServiceConnection) => service.createLoraTrainingClient({ baseModel, rank, alpha, seed }),
};
await withTrainingRun(record, async ({ training, run, checkpoints, signal, afterStep }) => {
  const tokenizer = await training.getTokenizer();

  /** One greedy answer to each problem that is never trained on. */
  async function judge(step: number, sampler: Sampler): Promise<void> {
    const evaluation = await evaluate(sampler, { environment, tokenizer, problems: heldOut, maxTokens, signal });
    await run.validation(step, evaluation);
    console.log(`after ${step} steps: ${accuracyText(evaluation)}`);
  }

  if (afterStep === 0) await judge(0, await training.saveWeightsAndGetSamplingClient());
  using view = createTerminalView({ stream: process.stdout, title: task.name });
  const { sampler } = await runGrpo({
    ...{ training, tokenizer, environment, problems: train, graderGate, checkpoints, signal },
    ...{ steps, seed, groupsPerStep, samplesPerGroup, maxTokens, learningRate },
    ...{ guard: { onAlarm: () => {} }, onNotice: view.onNotice }, // the view shows alarms with their step
    onFixedSamples: run.onFixedSamples,
    onStep: async (step) => {
      await run.onStep(step);
      view.onStep(step);
    },
  });
  view.close();
  await judge(steps, sampler);
  const { modelPackageArn } = await training.saveWeightsForSampler({ description: `${task.name}, ${steps} steps` });
  console.log(`adapter  ${modelPackageArn}`);
  console.log(`run      ${run.folder}`);
});
