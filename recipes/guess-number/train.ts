/**
 * Guess a number in four turns: a supervised warm-up on games of a player who guesses at random, then group relative policy optimisation on whole episodes, judged
 * before and after on ranges that no game of training begins with. Every weight is trained: the bundled model has never seen a range.
 *
 * Run: npx tsx recipes/guess-number/train.ts [--model ID|DIR] [--url URL] [--max-steps 40] [--seed 1] [--run runs/guess-number]
 * [--resume runs/guess-number]
 */
import { fileURLToPath } from 'node:url';
import {
  accuracyText,
  createRandom,
  createTerminalView,
  evaluateEpisodes,
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
import { guessNumber, heldOut, randomPlay, train } from './environment.js';
import { task } from './task.js';

const { baseModel, steps, seed, place, own } = recipeOptions({
  ...{ name: task.name, steps: config.steps },
  own: { 'warm-up-steps': `supervised steps that come first (default: ${config.warmUp.steps})` },
});
const warmUp = { ...config.warmUp, steps: Number(own['warm-up-steps'] ?? config.warmUp.steps) };
const { groupsPerStep, groupSize: samplesPerGroup, learningRate, maxTokens, maxTurns } = config;
const turns = { environment: guessNumber, maxTurns, maxTokens };

const { result: graderGate } = await testGrader(task); // a grader that fails refuses the run

const record = {
  ...{ ...place, config: { ...config, warmUp, baseModel, steps }, seeds: { seed }, data: { train, heldOut } },
  task: fileURLToPath(new URL('task.ts', import.meta.url)), // so that the run knows the version of its grader
  start: (service: ServiceConnection) => service.createTrainingClient({ trainingType: 'full', baseModel, seed }),
};
await withTrainingRun(record, async ({ training, run, checkpoints, signal, afterStep }) => {
  const tokenizer = await training.getTokenizer();

  /** One game of each held-out range, sampled as in training: that policy's reward is raised. An episode without a reward counts as lost. */
  async function judge(when: string, step: number, sampler: Sampler): Promise<void> {
    const games = { ...turns, problems: heldOut, temperature: 1, seed: 0 };
    const played = await evaluateEpisodes(sampler, { ...games, tokenizer, signal });
    await run.validation(step, played);
    const ruledOut = played.answers.reduce((sum, { reward }) => sum + (reward ?? 0), 0) / played.answers.length;
    console.log(`${when}: ${accuracyText(played)}; of a range ${(100 * ruledOut).toFixed(1)} % ruled out`);
  }

  if (afterStep === 0) {
    await judge('base model', 0, await training.saveWeightsAndGetSamplingClient());
    const random = createRandom(seed);
    const games = Array.from({ length: warmUp.steps * warmUp.batchSize }, () => randomPlay(random.pick(train), random));
    const data = games.map((messages) => sftDatumFromMessages(tokenizer, messages));
    const { batchSize, learningRate, gradClipNorm } = warmUp;
    await runSft({ training, data, batchSize, learningRate, gradClipNorm, seed, signal, guard: false }); // the same game comes often
    const sampler = await training.saveWeightsAndGetSamplingClient();
    await judge(`after ${warmUp.steps} steps of warm-up`, 0, sampler);
  }

  using view = createTerminalView({ stream: process.stdout, title: task.name });
  const { sampler } = await runGrpo({
    ...{ ...turns, training, tokenizer, problems: train, graderGate, checkpoints, signal },
    ...{ steps, seed, groupsPerStep, samplesPerGroup, learningRate },
    ...{ guard: { onAlarm: () => {} }, onNotice: view.onNotice }, // the view shows alarms with their step
    onFixedSamples: run.onFixedSamples,
    onStep: async (step) => {
      await run.onStep(step);
      view.onStep({ ...step, groups: [] }); // a game is many turns, of which the view shows none
    },
  });
  view.close();
  await judge(`after ${steps} steps`, steps, sampler);
  const { modelPackageArn } = await training.saveWeightsForSampler({ description: `${task.name}, ${steps} steps` });
  console.log(`weights  ${modelPackageArn}`);
  console.log(`run      ${run.folder}`);
});
