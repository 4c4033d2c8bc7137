/** The loop: sample a group of answers to each problem, grade them, learn from what was better than its group. */
import { centerRewards, connect, createRandom, escapeText, rlDatum } from 'loopwright';
import { environment } from './environment.js';

const baseModel = process.env.BASE_MODEL ?? 'loopwright-tiny';
const steps = Number(process.env.STEPS ?? 20);
const groupsPerStep = 16;
const samplesPerGroup = 8;

await using service = await connect(); // an embedded server, or the one at LOOPWRIGHT_URL
const training = await service.createLoraTrainingClient({ baseModel, rank: 16, alpha: 32, seed: 1 });
const tokenizer = await training.getTokenizer();
const random = createRandom(1);

for (let step = 1; step <= steps; step++) {
  const sampler = await training.saveWeightsAndGetSamplingClient();
  const problems = Array.from({ length: groupsPerStep }, () => environment.draw(random));
  const groups = await Promise.all(
    problems.map(async (problem) => {
      const prompt = environment.prompt?.(problem, tokenizer) ?? tokenizer.encode(problem.question);
      const { sequences } = await sampler.sample(prompt, { numSamples: samplesPerGroup, maxTokens: 8 });
      const rewards = await Promise.all(
        sequences.map(async ({ tokens, stopReason }) => {
          const verdict = await environment.grade({ problem, text: tokenizer.decode(tokens), stopReason });
          if ('error' in verdict) throw verdict.error; // a broken grader is no reward of 0
          return verdict.reward;
        }),
      );
      return { problem, prompt, sequences, rewards };
    }),
  );

  const rewards = groups.flatMap((group) => group.rewards);
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const { problem, sequences } = groups[0]!; // there is at least one group
  const example = escapeText(`${problem.question}${tokenizer.decode(sequences[0]!.tokens)}`);
  console.log(`step ${step}/${steps}  reward ${mean.toFixed(3)}  for example ${example}`);

  const advantages = centerRewards(groups.map((group) => group.rewards));
  const data = groups.flatMap(({ prompt, sequences, rewards }, g) =>
    new Set(rewards).size === 1 // all alike: nothing to learn
      ? []
      : sequences.map((sequence, s) => rlDatum({ prompt, sequence, advantage: advantages[g]![s]! })),
  );
  if (data.length === 0) continue;
  const pass = training.forwardBackward(data, 'importance_sampling'); // queued at once
  const update = training.optimStep({ learningRate: 3e-3, gradClipNorm: 1 }); // queued behind it
  await Promise.all([pass, update]);
}

const { modelPackageArn } = await training.saveWeightsForSampler({ description: environment.name });
console.log(`adapter ${modelPackageArn}`);
console.log(`files   ${(await service.versionDirectory(modelPackageArn)) ?? 'with the server'}`);
