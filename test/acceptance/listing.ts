// biome-ignore-all format: the listing below the line stands as it is printed in the README
// biome-ignore-all assist/source/organizeImports: as above
import { grade, makeBatch } from './task.js';
// ---
import { connect, centerRewards, rlDatum } from 'loopwright';

await using service = await connect();                    // embedded server, or LOOPWRIGHT_URL
const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 16, alpha: 32, seed: 1 });
const tokenizer = await training.getTokenizer();

for (let step = 0; step < 30; step++) {
  const sampler = await training.saveWeightsAndGetSamplingClient();
  const groups = await Promise.all(makeBatch(step).map(async (problem) => {
    const prompt = tokenizer.encode(problem.question);
    const { sequences } = await sampler.sample(prompt, { numSamples: 8, maxTokens: 32 });
    return { prompt, sequences, rewards: sequences.map((s) => grade(tokenizer.decode(s.tokens), problem.answer)) };
  }));
  const advantages = centerRewards(groups.map((g) => g.rewards));
  const data = groups.flatMap((g, i) => g.sequences.map((sequence, j) =>
    rlDatum({ prompt: g.prompt, sequence, advantage: advantages[i]![j]! })));
  const pass = training.forwardBackward(data, 'importance_sampling');   // queued at once
  const update = training.optimStep({ learningRate: 1e-4 });            // queued behind it
  await Promise.all([pass, update]);
}
console.log((await training.saveState({ description: 'adder' })).modelPackageArn);
