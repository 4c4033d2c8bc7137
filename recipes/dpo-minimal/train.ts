/**
 * DPO in one file (arXiv:2305.18290): the model answers sums, a right and a wrong answer to the same sum make a pair, and the
 * right ones are to become likelier than the wrong ones, compared with the model as it was.
 *
 * Run: npx tsx recipes/dpo-minimal/train.ts [--steps 30] [--beta 0.1] [--learning-rate 1e-3] [--seed 1]
 */
import { parseArgs } from 'node:util';
import { arithmetic, connect, createRandom, dpo, preferenceData, wilsonInterval, withReference } from 'loopwright';

const { values } = parseArgs({
  options: {
    steps: { type: 'string', default: '30' },
    beta: { type: 'string', default: '0.1' },
    'learning-rate': { type: 'string', default: '1e-3' },
    seed: { type: 'string', default: '1' },
  },
});
function whole(name: string, text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  console.error(`--${name}: expected a whole number, got ${text}`);
  return process.exit(2);
}
const steps = whole('steps', values.steps);
const seed = whole('seed', values.seed);
const learningRate = Number(values['learning-rate']);
const loss = dpo({ beta: Number(values.beta) });
const baseModel = 'loopwright-tiny';
const pairsPerStep = 16;
const maxTokens = 8;

await using service = await connect(); // an embedded server, or the one at LOOPWRIGHT_URL
const training = await service.createLoraTrainingClient({ baseModel, rank: 16, alpha: 32, seed });
const tokenizer = await training.getTokenizer();
const base = await service.createSamplingClient({ baseModel }); // samples the pairs, and is the reference
const sums = arithmetic({ operations: ['+'], maxOperand: 99 });
type Sum = ReturnType<typeof sums.draw>;

/** A right and a wrong answer of the model to each sum that has both. */
async function pairsOf(problems: readonly Sum[]) {
  const pairs = await Promise.all(
    problems.map(async ({ question, answer }, i) => {
      const prompt = tokenizer.encode(question);
      const { sequences } = await base.sample(prompt, { numSamples: 8, maxTokens, seed: seed * 100_000 + i });
      const isRight = (tokens: number[]) => tokenizer.decode(tokens).trim() === answer;
      const whole = sequences.filter(({ tokens, stopReason }) => stopReason !== 'length' && tokens.length > 0);
      const chosen = whole.find(({ tokens }) => isRight(tokens));
      const rejected = whole.find(({ tokens }) => !isRight(tokens));
      return chosen && rejected ? [{ prompt, chosen: chosen.tokens, rejected: rejected.tokens }] : [];
    }),
  );
  return pairs.flat();
}

/** Answers to sums that are never trained on, sampled as they were for the pairs. */
async function judge(when: string): Promise<void> {
  const sampler = await training.saveWeightsAndGetSamplingClient();
  const problems = sums.problems({ split: 'held-out', count: 200, seed: 0 });
  const right = await Promise.all(
    problems.map(async ({ question, answer }, i) => {
      const { sequences } = await sampler.sample(tokenizer.encode(question), { maxTokens, seed: i });
      return tokenizer.decode(sequences[0]!.tokens).trim() === answer;
    }),
  );
  const correct = right.filter(Boolean).length;
  const { low, high } = wilsonInterval(correct, problems.length);
  const percent = [correct / problems.length, low, high].map((share) => (share * 100).toFixed(1));
  console.log(`${when}: ${percent[0]} % right, n = ${problems.length}, 95 % interval ${percent[1]}–${percent[2]} %`);
}

const random = createRandom(seed);
const problems = Array.from({ length: 320 }, () => sums.draw(random));
const pairs = await pairsOf(problems);
const heldOut = await pairsOf(sums.problems({ split: 'held-out', count: 60, seed: 1 }));
console.log(`${pairs.length} pairs from ${problems.length} sums, ${heldOut.length} held out`);
if (pairs.length < pairsPerStep || heldOut.length === 0)
  throw new Error('too few sums have a right and a wrong answer');

// The reference scores every answer once; no step pays for it again.
const [data, test] = await Promise.all(
  [preferenceData(pairs), preferenceData(heldOut)].map((each) => withReference(each, base)),
);

await judge('before');
let batch = random.shuffle(pairs.map((_, i) => i));
for (let step = 1; step <= steps; step++) {
  if (batch.length < pairsPerStep) batch = random.shuffle(pairs.map((_, i) => i));
  const chosen = batch.splice(0, pairsPerStep).flatMap((i) => [data![2 * i]!, data![2 * i + 1]!]);
  const pass = training.forwardBackwardCustom(chosen, loss);
  const update = training.optimStep({ learningRate, weightDecay: 0, gradClipNorm: 1 }); // queued behind it
  const [{ metrics }] = await Promise.all([pass, update]);
  const mean = (metrics['loss/sum']! / pairsPerStep).toFixed(3);
  console.log(`step ${step}/${steps}  loss ${mean}  margin ${metrics['reward/margin']!.toFixed(3)}`);
}
// The loss of pairs that are never trained on: a forward pass, and the same function.
const { outputs } = await training.forward(
  test!.map(({ modelInput, lossFnInputs: { targetTokens, weights } }) => ({
    modelInput,
    lossFnInputs: { targetTokens, weights },
  })),
  'cross_entropy',
);
const { metrics } = loss(
  outputs.map(({ logprobs }) => logprobs),
  test!,
);
console.log(
  `held-out pairs: margin ${metrics!['reward/margin']!.toFixed(3)}, ${(metrics!['reward/accuracy']! * 100).toFixed(1)} % the right way round`,
);
await judge('after');
const { modelPackageArn } = await training.saveWeightsForSampler({ description: `dpo-minimal, ${steps} steps` });
console.log(`adapter ${modelPackageArn}`);
console.log(`files   ${(await service.versionDirectory(modelPackageArn)) ?? 'with the server'}`);
