/**
 * Arithmetic: group relative policy optimisation on sums and differences, judged before and after on problems that are never
 * trained on.
 *
 * Run: npx tsx recipes/arithmetic/train.ts [--model ID|DIR] [--url URL] [--max-steps 40] [--seed 1] [--run runs/arithmetic]
 */
import {
  accuracyText,
  connect,
  createTerminalView,
  evaluate,
  recipeOptions,
  runGrpo,
  type Sampler,
  testGrader,
  withRun,
} from 'loopwright';
import { config } from './config.js';
import { environment, heldOut, task, train } from './task.js';

const { baseModel, connection, steps, seed, folder } = recipeOptions({ name: task.name, steps: config.steps });
const { rank, alpha, groupsPerStep, groupSize: samplesPerGroup, maxTokens, learningRate } = config;

const { result: graderGate } = await testGrader(task); // a grader that fails refuses the run
await using service = await connect(connection);
const training = await service.createLoraTrainingClient({ baseModel, rank, alpha, seed });
const tokenizer = await training.getTokenizer();

const record = {
  ...{ folder, config: { ...config, baseModel, steps }, seeds: { seed }, data: { train, heldOut }, tokenizer },
  usage: () => service.usage(),
};
await withRun(record, async (run) => {
  /** One greedy answer to each problem that is never trained on. */
  async function judge(step: number, sampler: Sampler): Promise<void> {
    const evaluation = await evaluate(sampler, { environment, tokenizer, problems: heldOut, maxTokens });
    await run.validation(step, evaluation);
    console.log(`after ${step} steps: ${accuracyText(evaluation)}`);
  }

  await judge(0, await training.saveWeightsAndGetSamplingClient());
  using view = createTerminalView({ stream: process.stdout, title: task.name });
  const { sampler } = await runGrpo({
    ...{ training, tokenizer, environment, problems: train, graderGate },
    ...{ steps, seed, groupsPerStep, samplesPerGroup, maxTokens, learningRate },
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
