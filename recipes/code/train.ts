/**
 * Programs that pass their tests, in episodes of two turns with a tool, while sampling goes on beside the trainer: groups are at most three optimizer steps old,
 * older ones are sampled again. Judged by the share of problems that are solved, before and after, and by how many groups taught nothing.
 *
 * Run: npx tsx recipes/code/train.ts [--data HumanEval.jsonl] [--model ID|DIR] [--url URL] [--max-steps 3] [--seed 1] [--run runs/code]
 * [--checkpoint-every 10] [--resume runs/code]
 */
import { fileURLToPath } from 'node:url';
import {
  accuracyText,
  createPythonSandbox,
  createTerminalView,
  evaluateEpisodes,
  openDataset,
  recipeOptions,
  runGrpo,
  type Sampler,
  type ServiceConnection,
  withTrainingRun,
} from 'loopwright';
import { config } from './config.js';
import { codeEnvironment } from './environment.js';
import { codeProblems, madeProblems } from './problems.js';

const { baseModel, steps, seed, place, own } = recipeOptions({
  ...{ name: 'code', model: 'HuggingFaceTB/SmolLM2-135M-Instruct', steps: config.steps },
  own: {
    data: 'rows of HumanEval or DeepCoder as .jsonl, .jsonl.gz or .parquet (default: small functions made by rule)',
  },
});
const { rank, alpha, groupsPerStep, groupSize, maxTurns, maxTokens, maxStepsOffPolicy, learningRate } = config;

const data = own.data === undefined ? madeProblems() : await openDataset(own.data);
const { train: toLearn, heldOut: toJudge } = data.split({ parts: { train: 0.7, heldOut: 0.3 } });
const { problems: train, left } = await codeProblems(toLearn);
const heldOut = (await codeProblems(toJudge)).problems.slice(0, config.heldOut);
console.log(
  `${train.length} problems to learn from, ${left} with tests that can't be run left out, ${heldOut.length} held out`,
);

await using sandbox = await createPythonSandbox({ workers: 2, timeoutMs: 20_000 });
const turns = { environment: codeEnvironment(train, sandbox), maxTurns, maxTokens };

const record = {
  ...{ ...place, config: { ...config, baseModel, steps }, seeds: { seed }, data: { train, heldOut } },
  task: fileURLToPath(new URL('task.ts', import.meta.url)), // so that the run knows the version of its grader
  start: (service: ServiceConnection) => service.createLoraTrainingClient({ baseModel, rank, alpha, seed }),
};
await withTrainingRun(record, async ({ training, run, checkpoints, signal, afterStep }) => {
  const tokenizer = await training.getTokenizer();

  /** One episode of each held-out problem, sampled as in training. */
  async function judge(step: number, sampler: Sampler): Promise<void> {
    const judged = { problems: heldOut, temperature: 1, seed: 0 };
    const evaluation = await evaluateEpisodes(sampler, { ...turns, ...judged, tokenizer, signal });
    await run.validation(step, evaluation);
    const blockless = evaluation.answers.filter(({ reward }) => reward !== undefined && reward < 0).length;
    console.log(`after ${step} steps: ${accuracyText(evaluation)}, ${blockless} without a code block`);
  }

  if (afterStep === 0) await judge(0, await training.saveWeightsAndGetSamplingClient());
  using view = createTerminalView({ stream: process.stdout, title: 'code' });
  const { sampler, metrics } = await runGrpo({
    ...{ training, tokenizer, ...turns, problems: train, steps, seed, groupsPerStep, samplesPerGroup: groupSize },
    ...{ learningRate, maxStepsOffPolicy, stalePolicy: 'requeue', checkpoints, signal },
    ...{ guard: { onAlarm: () => {} }, onNotice: view.onNotice }, // the view shows alarms with their step
    onFixedSamples: run.onFixedSamples,
    onStep: async (step) => {
      await run.onStep(step);
      view.onStep({ ...step, groups: [] }); // an episode is several turns, of which the view shows none
    },
  });
  view.close();
  const dead = metrics.reduce((sum, each) => sum + (each['groups/dead'] ?? 0), 0);
  console.log(
    `${dead} of ${metrics.length * groupsPerStep} groups dead: all episodes are worth the same, so they teach nothing`,
  );
  await judge(steps, sampler);
  const { modelPackageArn } = await training.saveWeightsForSampler({ description: `code, ${steps} steps` });
  console.log(`adapter  ${modelPackageArn}`);
  console.log(`run      ${run.folder}`);
});
