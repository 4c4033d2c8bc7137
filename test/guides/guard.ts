import { arithmetic, centerRewards, connect, createGuard, rlDatum } from 'loopwright';

await using service = await connect();
const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 8, seed: 1 });
const tokenizer = await training.getTokenizer();
const problems = arithmetic({ operations: ['+'], maxOperand: 99 }).problems({ split: 'rl', count: 12, seed: 1 });
const guard = createGuard({
  onAlarm: ({ name, level, step, seen }) => console.log(`${name} ${level}, step ${step}: ${seen}`),
});
const sampler = await training.saveWeightsAndGetSamplingClient(); // the fault: it belongs into the loop

for (let step = 1; step <= 3; step++) {
  const groups = await Promise.all(
    problems.slice(4 * step - 4, 4 * step).map(async ({ question, answer }, i) => {
      const prompt = tokenizer.encode(question);
      const { sequences } = await sampler.sample(prompt, { numSamples: 8, maxTokens: 8, seed: 10 * step + i });
      const samples = sequences.map((sequence) => {
        return { ...sequence, reward: Number(tokenizer.decode(sequence.tokens).trim() === answer) };
      });
      return { prompt, samples };
    }),
  );
  const advantages = centerRewards(groups.map(({ samples }) => samples.map(({ reward }) => reward)));
  const made = groups.flatMap(({ prompt, samples }, p) =>
    samples.map((sequence, s) => ({ prompt, sequence, advantage: advantages[p]![s]! })),
  );
  const data = made.map(rlDatum);
  const sources = made.map(({ prompt, sequence: { tokens } }) => ({
    parts: [{ kind: 'prompt', tokens: prompt } as const, { kind: 'sampled', tokens } as const],
  }));
  const learningRate = 1e-3;
  const pass = training.forwardBackward(data, 'importance_sampling');
  const [{ outputs }, update] = await Promise.all([pass, training.optimStep({ learningRate })]);
  await guard.observe({ step, sampler, groups, data, sources, outputs, update, learningRate });
}
