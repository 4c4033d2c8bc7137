/**
 * Supervised fine-tuning in one file: rows of {question, answer}, loss on the answers only, held-out loss before and after.
 *
 * Run: npx tsx recipes/sft-minimal/train.ts --data train.jsonl [--model ID|DIR] [--rows 200] [--held-out 50] [--steps 25]
 */
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { connect, createRandom, type DatumFor, sftDatum, sftDatumFromMessages } from 'loopwright';

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    model: { type: 'string', default: 'loopwright-tiny' },
    rows: { type: 'string', default: '200' },
    'held-out': { type: 'string', default: '50' },
    steps: { type: 'string' },
    'learning-rate': { type: 'string' },
    seed: { type: 'string', default: '1' },
  },
});
if (values.data === undefined) {
  console.error('--data: expected a JSONL file with rows of {"question": …, "answer": …}, got none');
  process.exit(2);
}
function whole(name: string, text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  console.error(`--${name}: expected a whole number, got ${text}`);
  return process.exit(2);
}
const baseModel = existsSync(join(values.model, 'config.json')) ? resolve(values.model) : values.model;
const learningRate = Number(values['learning-rate'] ?? (baseModel === 'loopwright-tiny' ? 3e-3 : 2e-4));
const seed = whole('seed', values.seed);
const heldOutCount = whole('held-out', values['held-out']);
const rowCount = heldOutCount + whole('rows', values.rows);
const givenSteps = values.steps === undefined ? undefined : whole('steps', values.steps);
const random = createRandom(seed);
const batchSize = 8;
/** Longer rows are left out, and counted. */
const maxTokens = 512;

await using service = await connect(); // an embedded server, or the one at LOOPWRIGHT_URL
const training = await service.createLoraTrainingClient({ baseModel, rank: 16, alpha: 32, seed });
const tokenizer = await training.getTokenizer();

function datumOf(line: string, index: number): DatumFor<'cross_entropy'> {
  const { question, answer } = JSON.parse(line) as { question?: unknown; answer?: unknown }; // checked next
  if (typeof question !== 'string' || typeof answer !== 'string') {
    throw new Error(`${values.data}: row ${index + 1}: expected the strings question and answer`);
  }
  if (tokenizer.hasChatTemplate) {
    return sftDatumFromMessages(tokenizer, [
      { role: 'user', content: question },
      { role: 'assistant', content: answer },
    ]);
  }
  const end = tokenizer.eosTokenIds.slice(0, 1);
  return sftDatum({ prompt: tokenizer.encode(`${question}\n`), completion: [...tokenizer.encode(answer), ...end] });
}

const lines = readFileSync(values.data, 'utf8')
  .split('\n')
  .filter((line) => line.trim() !== '');
const rows = lines.slice(0, rowCount).map(datumOf);
const fits = rows.filter(({ modelInput }) => modelInput.length <= maxTokens);
const heldOut = fits.slice(0, heldOutCount);
const data = fits.slice(heldOut.length);
if (data.length === 0)
  throw new Error(`${values.data}: no rows are left to train on after ${heldOut.length} held-out ones`);
console.log(
  `${data.length} rows to learn, ${heldOut.length} held out, ${rows.length - fits.length} longer than ${maxTokens} tokens left out`,
);

/** Target tokens, over which losses are averaged. */
function targetsIn(batch: readonly DatumFor<'cross_entropy'>[]): number {
  return batch.reduce(
    (sum, { lossFnInputs }) => sum + Array.from(lossFnInputs.weights, Number).reduce((a, b) => a + b),
    0,
  );
}

/** Mean loss per target token, in nats, on rows that are never trained on. */
async function judge(when: string): Promise<void> {
  if (heldOut.length === 0) return;
  const { outputs } = await training.forward(heldOut, 'cross_entropy');
  const loss = outputs.reduce((sum, output) => sum + output.loss, 0) / targetsIn(heldOut);
  console.log(
    `${when}: held-out loss ${loss.toFixed(4)} per token (n = ${heldOut.length} rows, ${targetsIn(heldOut)} tokens)`,
  );
}

await judge('before');
const steps = givenSteps ?? Math.ceil(data.length / batchSize); // one epoch by default
let queue: DatumFor<'cross_entropy'>[] = [];
let trainedTokens = 0;
const start = performance.now();

for (let step = 1; step <= steps; step++) {
  if (queue.length === 0) queue = random.shuffle(data);
  const batch = queue.splice(0, batchSize);
  const pass = training.forwardBackward(batch, 'cross_entropy'); // queued at once
  const update = training.optimStep({ learningRate, weightDecay: 0 }); // queued behind it
  const [{ outputs, trainingTokens }] = await Promise.all([pass, update]);
  trainedTokens += trainingTokens;
  const loss = outputs.reduce((sum, output) => sum + output.loss, 0) / targetsIn(batch);
  console.log(`step ${step}/${steps}  loss ${loss.toFixed(4)}`);
}

const seconds = (performance.now() - start) / 1000;
await judge('after');
console.log(
  `training ${seconds.toFixed(1)} s, ${trainedTokens} tokens, ${(trainedTokens / seconds).toFixed(0)} a second`,
);
const { modelPackageArn } = await training.saveWeightsForSampler({ description: `sft-minimal, ${steps} steps` });
console.log(
  `adapter ${modelPackageArn}\nfiles   ${(await service.versionDirectory(modelPackageArn)) ?? 'with the server'}`,
);
