/**
 * Supervised fine-tuning on conversations: cross entropy on what the assistant says. Judged by the loss on conversations that are never trained on and, on the
 * letters of this recipe, by the share of replies in the house's style with the right name, order and matter.
 *
 * Run: npx tsx recipes/chat-sft/train.ts [--data chats.jsonl] [--model ID|DIR] [--url URL] [--max-steps 40] [--seed 1] [--run runs/chat-sft]
 */
import {
  accuracyText,
  type ChatRow,
  connect,
  createTerminalView,
  type Dataset,
  datasetOf,
  evaluate,
  openDataset,
  recipeOptions,
  runSft,
  sftDatumFromMessages,
  textSource,
  withRun,
} from 'loopwright';
import { config } from './config.js';
import { chatRows } from './letters.js';
import { environment, heldOut, task, train } from './task.js';

const { baseModel, connection, steps, seed, folder, own } = recipeOptions({
  ...{ name: task.name, model: task.model!, steps: config.steps }, // the task names its model
  own: {
    data: 'conversations as .jsonl, .jsonl.gz or .parquet (default: the letters of this recipe); a tenth is held out',
  },
});
const { rank, alpha, batchSize, learningRate, maxTokens, maxRowTokens } = config;

const data =
  own.data === undefined
    ? {
        train: datasetOf([textSource(chatRows(train), { file: 'letters to learn' })]),
        heldOut: datasetOf([textSource(chatRows(heldOut), { file: 'letters held out' })]),
      }
    : (await openDataset(own.data)).split({ parts: { train: 0.9, heldOut: 0.1 } });

await using service = await connect(connection);
const training = await service.createLoraTrainingClient({ baseModel, rank, alpha, seed });
const tokenizer = await training.getTokenizer();

/** The conversations as datums, with loss on the assistant's tokens; those that are too long are counted. */
async function datumsOf(name: string, rows: Dataset<ChatRow>) {
  const datums = [];
  let left = 0;
  for await (const { messages, tools } of rows) {
    const datum = sftDatumFromMessages(tokenizer, messages, tools === undefined ? {} : { tools });
    if (datum.modelInput.length <= maxRowTokens) datums.push(datum);
    else left += 1;
  }
  console.log(`${name}: ${datums.length} conversations, ${left} longer than ${maxRowTokens} tokens left out`);
  return datums;
}
const toLearn = await datumsOf('to learn', data.train.as('chat'));
const toJudge = await datumsOf('held out', data.heldOut.as('chat'));

const record = {
  ...{ folder, config: { ...config, baseModel, steps }, seeds: { seed }, data, tokenizer },
  usage: () => service.usage(),
};
await withRun(record, async (run) => {
  /** A greedy reply to each letter that is never trained on; other data has no rule to judge replies by. */
  async function judge(step: number): Promise<void> {
    if (own.data !== undefined) return;
    const sampler = await training.saveWeightsAndGetSamplingClient();
    const evaluation = await evaluate(sampler, { environment, tokenizer, problems: heldOut, maxTokens });
    await run.validation(step, evaluation);
    console.log(`after ${step} steps: ${accuracyText(evaluation)}, ${evaluation.n - evaluation.unparsed} in style`);
  }

  await judge(0);
  using view = createTerminalView({ stream: process.stdout, title: task.name });
  const epochs = Math.ceil((steps * batchSize) / toLearn.length);
  await runSft({
    ...{ training, data: toLearn, heldOut: toJudge, epochs, maxSteps: steps, batchSize, learningRate, seed },
    onStep: async (step) => {
      await run.onStep(step);
      view.onStep(step);
    },
    onValidation: async ({ step, metrics }) => {
      await run.step(step, metrics, 'held-out');
      const [loss, low, high] = ['loss', 'loss_low', 'loss_high'].map((name) =>
        metrics[`validation/${name}`]?.toFixed(4),
      );
      console.log(
        `after ${step} steps: held-out loss ${loss} per token (n = ${toJudge.length} conversations, 95 % interval ${low}–${high})`,
      );
    },
    onNotice: () => {}, // the end of an epoch is none to tell of
  });
  view.close();
  await judge(steps);
  const { modelPackageArn } = await training.saveWeightsForSampler({ description: `${task.name}, ${steps} steps` });
  console.log(`adapter  ${modelPackageArn}`);
  console.log(`run      ${run.folder}`);
});
