/**
 * A task of two turns, trained with group-centred advantages: exactly the tokens that the model sampled, in both turns.
 *
 * Run: npx tsx recipes/second-try/train.ts [--steps 20] [--learning-rate 3e-3] [--seed 1]
 */
import { parseArgs } from 'node:util';
import { connect, type EpisodeGrpoStep, runEpisodes, runGrpo, type Sampler } from 'loopwright';
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

const turns = { environment: secondTry, maxTurns: 2, maxTokens: 8 };

/** Rewards on sums that are never trained on, sampled as in training. */
async function judge(when: string, sampler: Sampler): Promise<void> {
  const problems = sums.problems({ split: 'held-out', count: 100, seed: 0 });
  const tokenizer = await training.getTokenizer();
  const groups = await runEpisodes({ ...turns, tokenizer, sampler, problems, groupSize: 1 });
  const rewards = groups.map(({ rollouts }) => rollouts[0]!.reward ?? Number.NaN);
  const [first, second] = [1, 0.5].map((worth) => rewards.filter((reward) => reward === worth).length);
  console.log(`${when}: ${first} of ${rewards.length} right at once, ${second} at the second try`);
}

/** The ratio is 1 but for rounding: exactly the sampled tokens are trained. */
function show({ step, metrics, warnings }: EpisodeGrpoStep): void {
  const of = (name: string, digits = 3): string => metrics[name]?.toFixed(digits) ?? '–';
  const ratio = `ratio ${of('ratio/min', 5)} to ${of('ratio/max', 5)}`;
  console.log(`step ${step}/${steps}  reward ${of('reward/mean')}  turns ${of('episode/turns_mean')}  ${ratio}`);
  for (const warning of warnings) console.warn(warning);
}

await judge('before', await training.saveWeightsAndGetSamplingClient());
const { sampler } = await runGrpo({ training, ...turns, steps, learningRate, seed, onStep: show });
await judge('after', sampler);
const { modelPackageArn } = await training.saveWeightsForSampler({ description: `second-try, ${steps} steps` });
console.log(`adapter ${modelPackageArn}`);
