/**
 * Trains an ordinary OpenAI agent on its own turns: each run of it has a recorder between its client and the server, and what was sampled is
 * trained id by id, without being encoded again. GRPO over groups of runs of the same question (arXiv:2402.03300).
 *
 * Run: npx tsx recipes/openai-agent/train.ts --model ID|DIR [--steps 10] [--learning-rate 1e-4] [--seed 1]
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { arithmetic, centerRewards, connect, createRandom, recordedDatums, TurnRecorder } from 'loopwright';
import OpenAI from 'openai';
import { agent } from './agent.js';

const { values } = parseArgs({
  options: {
    model: { type: 'string', default: 'Qwen/Qwen2.5-0.5B-Instruct' },
    steps: { type: 'string', default: '10' },
    'learning-rate': { type: 'string', default: '1e-4' },
    seed: { type: 'string', default: '1' },
    key: { type: 'string', default: 'of-this-process' },
  },
});
const baseModel = existsSync(join(values.model, 'config.json')) ? resolve(values.model) : values.model;
const [steps, seed, learningRate] = [values.steps, values.seed, values['learning-rate']].map(Number) as [
  number,
  number,
  number,
]; // true: three in, three out
const [groupsPerStep, runsPerGroup] = [4, 8];

await using service = await connect({ apiKey: values.key }); // an embedded server, or the one at LOOPWRIGHT_URL with that key
const training = await service.createLoraTrainingClient({ baseModel, rank: 16, alpha: 32, seed });
const sums = arithmetic({ operations: ['+'], maxOperand: 999 });
const random = createRandom(seed);

/** One run of the agent, its turns recorded. */
async function run(question: string, runSeed: number) {
  const recorder = new TurnRecorder();
  const client = new OpenAI({ baseURL: `${service.baseUrl}/v1`, apiKey: values.key, fetch: recorder.fetch });
  const said = await agent(client, { model: training.name, question, seed: runSeed });
  return { said, turns: recorder.turns };
}

for (let step = 1; step <= steps; step++) {
  await training.saveWeightsForSampler({ description: `step ${step}`, ttlSeconds: 3600 }); // what the session answers with from now on
  const groups = await Promise.all(
    Array.from({ length: groupsPerStep }, async (_, g) => {
      const { a, b, answer } = sums.draw(random);
      const question = `What is ${a} plus ${b}?`;
      const first = seed * 1_000_000 + step * 10_000 + g * 1000;
      const runs = await Promise.all(Array.from({ length: runsPerGroup }, (_, r) => run(question, first + r * 10)));
      return { runs, rewards: runs.map(({ said }) => (said.match(/\d+/g)?.at(-1) === answer ? 1 : 0)) };
    }),
  );
  const advantages = centerRewards(groups.map(({ rewards }) => rewards));
  const data = groups.flatMap(({ runs }, g) =>
    runs.flatMap(({ turns }, r) => recordedDatums({ turns, advantage: advantages[g]![r]! })),
  );
  if (data.length > 0) {
    const pass = training.forwardBackward(data, 'importance_sampling');
    const update = training.optimStep({ learningRate, weightDecay: 0, gradClipNorm: 1 });
    await Promise.all([pass, update]);
  }
  const rewards = groups.flatMap((group) => group.rewards);
  const turns = groups.flatMap(({ runs }) => runs.map((each) => each.turns.length));
  const mean = (list: readonly number[]) => (list.reduce((sum, each) => sum + each, 0) / list.length).toFixed(3);
  console.log(`step ${step}/${steps}  reward ${mean(rewards)}  turns ${mean(turns)}  datums ${data.length}`);
}
console.log(`adapter ${(await training.saveWeightsForSampler({ description: 'openai-agent' })).modelPackageArn}`);
