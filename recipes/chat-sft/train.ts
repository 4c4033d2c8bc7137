/**
 * Supervised fine-tuning on conversations: cross entropy on what the assistant says. Judged by the loss on conversations that are never trained on and, on the
 * letters of this recipe, by the share of replies in the house's style with the right name, order and matter.
 *
 * Run: npx tsx recipes/chat-sft/train.ts [--data chats.jsonl] [--model ID|DIR] [--url URL] [--max-steps 40] [--seed 1] [--run runs/chat-sft]
 * [--checkpoint-every 10] [--resume runs/chat-sft]
 */
import { fileURLToPath } from 'node:url';
import {
  accuracyText,
  type ChatRow,
  createTerminalView,
  type Dataset,
  datasetOf,
  evaluate,
  openDataset,
  recipeOptions,
  runSft,
  type Sampler,
  type ServiceConnection,
  sftDatumFromMessages,
  type Tokenizer,
  textSource,
  withTrainingRun,
} from 'loopwright';
import { config } from './config.js';
import { chatRows, type Letter } from './letters.js';
import { environment, heldOut, task, train } from './task.js';

const { baseModel, steps, seed, place, own } = recipeOptions({
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

/** The conversations as datums, with loss on the assistant's tokens; those that are too long are counted. */
async function datumsOf(name: string, rows: Dataset<ChatRow>, tokenizer: Tokenizer) {
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

const record = {
  ...{ ...place, config: { ...config, baseModel, steps }, seeds: { seed }, data },
  task: fileURLToPath(new URL('task.ts', import.meta.url)), // so that the run knows the version of its grader
  start: (service: ServiceConnection) => service.createLoraTrainingClient({ baseModel, rank, alpha, seed }),
};
await withTrainingRun(record, async ({ training, run, checkpoints, signal, afterStep }) => {
  const tokenizer = await training.getTokenizer();
  const toLearn = await datumsOf('to learn', data.train.as('chat'), tokenizer);
  const toJudge = await datumsOf('held out', data.heldOut.as('chat'), tokenizer);
  const repliesTo = (sampler: Sampler, problems: readonly Letter[]) =>
    evaluate(sampler, { environment, tokenizer, problems, maxTokens, signal });

  /** A greedy reply to each letter that is never trained on; other data has no rule to judge replies by. */
  async function judge(step: number): Promise<void> {
    if (own.data !== undefined) return;
    const evaluation = await repliesTo(await training.saveWeightsAndGetSamplingClient(), heldOut);
    await run.validation(step, evaluation);
    console.log(`after ${step} steps: ${accuracyText(evaluation)}, ${evaluation.n - evaluation.unparsed} in style`);
  }

  if (afterStep === 0) await judge(0);
  using view = createTerminalView({ stream: process.stdout, title: task.name });
  const epochs = Math.ceil((steps * batchSize) / toLearn.length);
  await runSft({
    ...{ training, data: toLearn, heldOut: toJudge, epochs, maxSteps: steps, batchSize, learningRate, seed },
    ...{ checkpoints, signal },
    onStep: async (step) => {
      await run.onStep(step);
      view.onStep(step);
    },
    onValidation: async (validation) => {
      await run.step(validation.step, validation.metrics, 'held-out'); // beside the replies, a `validation` of its own
      view.onValidation(validation);
    },
    // Of the same few letters, so that people see how the replies change.
    onSampler: async ({ sampler, step }) => {
      if (own.data === undefined)
        await run.onFixedSamples({ step, ...(await repliesTo(sampler, heldOut.slice(0, config.fixed))) });
    },
    ...{ guard: { onAlarm: () => {} }, onNotice: view.onNotice }, // the view shows alarms with their step
  });
  view.close();
  await judge(steps);
  const { modelPackageArn } = await training.saveWeightsForSampler({ description: `${task.name}, ${steps} steps` });
  console.log(`adapter  ${modelPackageArn}`);
  console.log(`run      ${run.folder}`);
});
