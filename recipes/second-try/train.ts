/**
 * A task of two turns, trained with group-centred advantages: exactly the tokens that the model sampled, in both turns.
 *
 * Run: npx tsx recipes/second-try/train.ts [--steps 20] [--learning-rate 3e-3] [--seed 1]
 */
import { parseArgs } from 'node:util';
import { centerRewards, connect, createRandom, episodeDatums, mixSeed, runEpisodes } from 'loopwright';
import { secondTry, sums } from './environment.js';

const { values } = parseArgs({
  options: {
    steps: { type: 'string', default: '20' },
    'learning-rate': { type: 'string', default: '3e-3' },
    seed: { type: 'string', default: '1' },
  },
});
const [steps, seed, learningRate] = [Number(values.steps), Number(values.seed), Number(values['learning-rate'])];

await using service = await connect(); // an embedded server, or the one at LOOPWRIGHT_URL
const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 16, alpha: 32, seed });
const tokenizer = await training.getTokenizer();
const limits = { tokenizer, environment: secondTry, maxTurns: 2, maxTokens: 8 };

/** Rewards on sums that are never trained on, sampled as in training. */
async function judge(when: string): Promise<void> {
  const sampler = await training.saveWeightsAndGetSamplingClient();
  const problems = sums.problems({ split: 'held-out', count: 100, seed: 0 });
  const groups = await runEpisodes({ ...limits, sampler, problems, groupSize: 1 });
  const rewards = groups.map(({ rollouts }) => rollouts[0]!.reward ?? Number.NaN);
  const [first, second] = [1, 0.5].map((worth) => rewards.filter((reward) => reward === worth).length);
  console.log(`${when}: ${first} of ${rewards.length} right at once, ${second} at the second try`);
}

await judge('before');
const random = createRandom(seed);
for (let step = 1; step <= steps; step++) {
  const sampler = await training.saveWeightsAndGetSamplingClient();
  const problems = Array.from({ length: 8 }, () => secondTry.draw(random));
  const groups = await runEpisodes({ ...limits, sampler, problems, groupSize: 8, seed: mixSeed(seed, step) });
  const graded = groups.map(({ rollouts }) => rollouts.filter(({ reward }) => reward !== undefined));
  const rewards = graded.map((rollouts) => rollouts.map(({ reward }) => reward!));
  const advantages = centerRewards(rewards);
  const data = graded.flatMap((rollouts, g) =>
    rollouts.flatMap((rollout, i) => episodeDatums({ rollout, advantage: advantages[g]![i]! })),
  );
  const pass = training.forwardBackward(data, 'importance_sampling'); // queued at once
  const update = training.optimStep({ learningRate, weightDecay: 0, gradClipNorm: 1 }); // queued behind it
  const { outputs } = await pass;
  await update;
  const all = rewards.flat();
  const mean = all.reduce((sum, reward) => sum + reward, 0) / all.length;
  console.log(`step ${step}/${steps}  reward ${mean.toFixed(3)}  ${furthestRatio(data, outputs)}`);
}
await judge('after');
const { modelPackageArn } = await training.saveWeightsForSampler({ description: `second-try, ${steps} steps` });
console.log(`adapter ${modelPackageArn}`);

/** How far the trained policy is from the one that sampled, before the update: 0 but for rounding, since exactly its tokens are trained. */
function furthestRatio(data: ReturnType<typeof episodeDatums>, outputs: readonly { logprobs: unknown }[]): string {
  const distances = data.flatMap(({ lossFnInputs: { weights, logprobs } }, d) => {
    const trained = outputs[d]!.logprobs as number[]; // flat, as the targets are
    return trained.map((logprob, t) => (weights[t] === 1 ? Math.abs(logprob - Number(logprobs[t])) : 0));
  });
  return `largest |log ratio| ${Math.max(...distances).toExponential(1)}`;
}
