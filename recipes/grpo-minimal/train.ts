/**
 * GRPO in one file, with nothing between you and the algorithm: sample a group of answers to each problem, grade them, take
 * each reward's distance from its group's mean as advantage, step, repeat (arXiv:2402.03300).
 *
 * Run: npx tsx recipes/grpo-minimal/train.ts [--model ID|DIR] [--steps 20] [--learning-rate 3e-3] [--seed 1]
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { arithmetic, centerRewards, connect, createRandom, escapeText, rlDatum, wilsonInterval } from 'loopwright';

const { values } = parseArgs({
  options: {
    model: { type: 'string', default: 'loopwright-tiny' },
    steps: { type: 'string', default: '20' },
    'learning-rate': { type: 'string' },
    seed: { type: 'string', default: '1' },
  },
});
function whole(name: string, text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  console.error(`--${name}: expected a whole number, got ${text}`);
  return process.exit(2);
}
const baseModel = existsSync(join(values.model, 'config.json')) ? resolve(values.model) : values.model;
const steps = whole('steps', values.steps);
const seed = whole('seed', values.seed);
const [groupsPerStep, samplesPerGroup] = [8, 8];

await using service = await connect(); // an embedded server, or the one at LOOPWRIGHT_URL
const training = await service.createLoraTrainingClient({ baseModel, rank: 16, alpha: 32, seed });
const tokenizer = await training.getTokenizer();

// The task: sums. The bundled model has seen `27+58=`; others are asked in words, through their chat template.
const inWords = tokenizer.hasChatTemplate && baseModel !== 'loopwright-tiny';
const sums = arithmetic({ operations: ['+'], maxOperand: inWords ? 30 : 99 });
const learningRate = Number(values['learning-rate'] ?? (inWords ? 5e-4 : 3e-3));
const maxTokens = inWords ? 16 : 8;
type Sum = ReturnType<typeof sums.draw>;

function promptOf({ a, b, question }: Sum): number[] {
  if (!inWords) return tokenizer.encode(question);
  const content = `What is ${a} plus ${b}? Answer with the number only.`;
  return tokenizer.applyChatTemplate([{ role: 'user', content }], { addGenerationPrompt: true });
}

/** 1 when the last number of the text is the sum, 0 otherwise: chat models like to repeat the question first. */
function gradeOf(text: string, { answer }: Sum): number {
  return text.match(/\d+/g)?.at(-1) === answer ? 1 : 0;
}

/** The grade, and for chat models a little for a number alone: at first few of their answers are right, and fewer groups would teach. */
function rewardOf(text: string, sum: Sum): number {
  return gradeOf(text, sum) + (inWords && /^\s*\d+\s*$/.test(text) ? 0.2 : 0);
}

/** Answers to sums that are never trained on, drawn as in training: that is the policy whose reward GRPO raises. */
async function judge(when: string): Promise<void> {
  const sampler = await training.saveWeightsAndGetSamplingClient();
  const problems = sums.problems({ split: 'held-out', count: inWords ? 90 : 100, seed: 0 });
  const texts = await Promise.all(
    problems.map(async (problem, i) => {
      const { sequences } = await sampler.sample(promptOf(problem), { maxTokens, seed: i });
      return tokenizer.decode(sequences[0]!.tokens);
    }),
  );
  const correct = texts.filter((text, i) => gradeOf(text, problems[i]!) === 1).length;
  const { low, high } = wilsonInterval(correct, problems.length);
  const percent = [correct / problems.length, low, high].map((share) => (share * 100).toFixed(1));
  console.log(`${when}: ${percent[0]} % right, n = ${problems.length}, 95 % interval ${percent[1]}–${percent[2]} %`);
  console.log(`  ${problems[0]!.question} ${escapeText(texts[0]!)}`);
}

await judge('before');
const random = createRandom(seed);
const seconds = { sample: 0, train: 0 };
let sampledTokens = 0;

for (let step = 1; step <= steps; step++) {
  const start = performance.now();
  const sampler = await training.saveWeightsAndGetSamplingClient();
  const groups = await Promise.all(
    Array.from({ length: groupsPerStep }, async (_, g) => {
      const problem = sums.draw(random);
      const prompt = promptOf(problem);
      const sampleSeed = seed * 1_000_000 + step * 1000 + g;
      const { sequences } = await sampler.sample(prompt, { numSamples: samplesPerGroup, maxTokens, seed: sampleSeed });
      const rewards = sequences.map(({ tokens }) => rewardOf(tokenizer.decode(tokens), problem));
      return { prompt, sequences, rewards };
    }),
  );
  const sampled = performance.now();
  const live = groups.filter(({ rewards }) => new Set(rewards).size > 1); // a group of equal rewards teaches nothing
  const advantages = centerRewards(live.map(({ rewards }) => rewards));
  const data = live.flatMap(({ prompt, sequences }, g) =>
    sequences.map((sequence, s) => rlDatum({ prompt, sequence, advantage: advantages[g]![s]! })),
  );
  if (data.length > 0) {
    const pass = training.forwardBackward(data, 'importance_sampling'); // queued at once
    const update = training.optimStep({ learningRate, weightDecay: 0, gradClipNorm: 1 }); // queued behind it
    await Promise.all([pass, update]);
  }
  const end = performance.now();
  seconds.sample += (sampled - start) / 1000;
  seconds.train += (end - sampled) / 1000;
  sampledTokens += groups.flatMap(({ sequences }) => sequences).reduce((sum, { tokens }) => sum + tokens.length, 0);
  const rewards = groups.flatMap((group) => group.rewards);
  const reward = (rewards.reduce((sum, each) => sum + each, 0) / rewards.length).toFixed(3);
  const dead = groups.length - live.length;
  console.log(`step ${step}/${steps}  reward ${reward}  dead groups ${dead}  ${((end - start) / 1000).toFixed(1)} s`);
}

await judge('after');
console.log(
  `sampling ${seconds.sample.toFixed(1)} s (${sampledTokens} tokens), training ${seconds.train.toFixed(1)} s`,
);
const { modelPackageArn } = await training.saveWeightsForSampler({ description: `grpo-minimal, ${steps} steps` });
console.log(`adapter ${modelPackageArn}`);
console.log(`files   ${(await service.versionDirectory(modelPackageArn)) ?? 'with the server'}`);
