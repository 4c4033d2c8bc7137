/**
 * Points as JSON: a supervised warm-up on what a careless clerk wrote, then group relative policy optimisation with a grader of components, judged before
 * and after on points that are never trained on. Every weight is trained: an adapter can't teach the bundled model letters that it has never seen.
 *
 * Run: npx tsx recipes/json-extract/train.ts [--model ID|DIR] [--url URL] [--max-steps 30] [--seed 1] [--run runs/json-extract]
 * [--resume runs/json-extract]
 */
import { fileURLToPath } from 'node:url';
import {
  accuracyText,
  createRandom,
  createTerminalView,
  evaluate,
  preflight,
  recipeOptions,
  runGrpo,
  runSft,
  type Sampler,
  type ServiceConnection,
  sftDatumFromMessages,
  testGrader,
  withTrainingRun,
} from 'loopwright';
import { config } from './config.js';
import { careless, heldOut, train } from './points.js';
import { environment, task } from './task.js';

const { baseModel, steps, seed, place, own } = recipeOptions({
  ...{ name: task.name, steps: config.steps },
  own: { 'warm-up-steps': `supervised steps that come first (default: ${config.warmUp.steps})` },
});
const warmUp = { ...config.warmUp, steps: Number(own['warm-up-steps'] ?? config.warmUp.steps) };
const { groupsPerStep, groupSize: samplesPerGroup, maxTokens, learningRate } = config;

const { result: graderGate } = await testGrader(task); // a grader that fails refuses the run

const record = {
  ...{ ...place, config: { ...config, warmUp, baseModel, steps }, seeds: { seed }, data: { train, heldOut } },
  task: fileURLToPath(new URL('task.ts', import.meta.url)), // so that the run knows the version of its grader
  start: (service: ServiceConnection) => service.createTrainingClient({ trainingType: 'full', baseModel, seed }),
};
await withTrainingRun(record, async ({ training, run, checkpoints, signal, afterStep }) => {
  const tokenizer = await training.getTokenizer();

  /** One greedy answer to each point that is never trained on. */
  async function judge(when: string, sampler: Sampler) {
    const evaluation = await evaluate(sampler, { environment, tokenizer, problems: heldOut, maxTokens, signal });
    const scores = ['json_schema', 'json.x', 'json.y', 'json.z'].map((name) => {
      const components = evaluation.answers.flatMap(({ grade }) => grade.components ?? []);
      const right = components.filter((each) => each.name === name && 'score' in each && each.score === 1).length;
      return `${name} ${right}`;
    });
    console.log(`${when}: ${accuracyText(evaluation)}; ${scores.join(', ')}`);
    return evaluation;
  }

  if (afterStep === 0) {
    await judge('base model', await training.saveWeightsAndGetSamplingClient());
    const random = createRandom(seed);
    const data = train.map((point) =>
      sftDatumFromMessages(tokenizer, [
        { role: 'user', content: point.question },
        { role: 'assistant', content: careless(point, random) },
      ]),
    );
    const { steps: maxSteps, batchSize, learningRate, gradClipNorm } = warmUp;
    const epochs = Math.ceil((maxSteps * batchSize) / data.length);
    const supervised = { data, epochs, maxSteps, batchSize, learningRate, gradClipNorm, seed, signal };
    await runSft({ training, ...supervised, onNotice: () => {} });
    const sampler = await training.saveWeightsAndGetSamplingClient();
    await run.validation(0, await judge(`after ${warmUp.steps} steps of warm-up`, sampler));
    const { report } = await preflight(task, { sampler, tokenizer, seed, signal });
    const { outcome, passRate, findings } = report;
    console.log(`preflight: ${outcome}, ${accuracyText({ ...passRate, accuracy: passRate.share })} of samples`);
    for (const { level, name, seen } of findings) console.log(`  ${level}  ${name}: ${seen}`);
  }

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
  await run.validation(steps, await judge(`after ${steps} steps`, sampler));
  const { modelPackageArn } = await training.saveWeightsForSampler({ description: `${task.name}, ${steps} steps` });
  console.log(`weights  ${modelPackageArn}`);
  console.log(`run      ${run.folder}`);
});
