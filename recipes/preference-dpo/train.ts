/**
 * Direct preference optimisation (arXiv:2305.18290): of two answers to a prompt the chosen becomes likelier than the rejected, measured against the base
 * model. Judged by pairs that are never trained on and, on the questions of this recipe, by the units that greedy answers are given in.
 *
 * Run: npx tsx recipes/preference-dpo/train.ts [--data pairs.jsonl] [--model ID|DIR] [--url URL] [--max-steps 30] [--seed 1] [--run runs/preference-dpo]
 * [--checkpoint-every 10] [--resume runs/preference-dpo]
 */
import { fileURLToPath } from 'node:url';
import {
  accuracyOf,
  accuracyText,
  type ChatMessage,
  createGuard,
  createTerminalView,
  type Dataset,
  datasetOf,
  dpo,
  evaluate,
  openDataset,
  type PreferenceRow,
  recipeOptions,
  resumableSteps,
  type Scorer,
  type ServiceConnection,
  sftDatumFromMessages,
  shuffledBatches,
  type Tokenizer,
  textSource,
  withReference,
  withTrainingRun,
} from 'loopwright';
import { config } from './config.js';
import { preferenceRows, questions } from './measures.js';
import { environment, task } from './task.js';

const { baseModel, steps, seed, place, own } = recipeOptions({
  ...{ name: task.name, model: task.model!, steps: config.steps }, // the task names its model
  own: { data: 'pairs as .jsonl, .jsonl.gz or .parquet (default: the questions of this recipe); a tenth is held out' },
});
const { rank, alpha, beta, batchSize, learningRate, maxTokens, maxRowTokens } = config;

const data =
  own.data === undefined
    ? {
        train: datasetOf([textSource(preferenceRows(questions.train), { file: 'questions to learn' })]),
        heldOut: datasetOf([textSource(preferenceRows(questions.heldOut), { file: 'questions held out' })]),
      }
    : (await openDataset(own.data)).split({ parts: { train: 0.9, heldOut: 0.1 } });

/** Chosen and rejected of each row, with loss on the answers; the base model scores them once, and no step pays for it again. */
async function pairsOf(
  name: string,
  rows: Dataset<PreferenceRow>,
  { tokenizer, base, signal }: { readonly tokenizer: Tokenizer; readonly base: Scorer; readonly signal: AbortSignal },
) {
  const datumOf = (prompt: string | readonly ChatMessage[], answer: string | readonly ChatMessage[]) => {
    const asked = typeof prompt === 'string' ? [{ role: 'user', content: prompt } as const] : prompt;
    const said = typeof answer === 'string' ? [{ role: 'assistant', content: answer } as const] : answer;
    return sftDatumFromMessages(tokenizer, [...asked, ...said], { turns: 'last' });
  };
  const pairs = [];
  let left = 0;
  for await (const { prompt = '', chosen, rejected } of rows) {
    const pair = [datumOf(prompt, chosen), datumOf(prompt, rejected)];
    if (pair.every(({ modelInput }) => modelInput.length <= maxRowTokens)) pairs.push(pair);
    else left += 1;
  }
  console.log(`${name}: ${pairs.length} pairs, ${left} longer than ${maxRowTokens} tokens left out`);
  const scored = await withReference(pairs.flat(), base, { signal });
  return pairs.map((_, i) => scored.slice(2 * i, 2 * i + 2));
}
type Pair = Awaited<ReturnType<typeof pairsOf>>[number];

const record = {
  ...{ ...place, config: { ...config, baseModel, steps }, seeds: { seed }, data },
  task: fileURLToPath(new URL('task.ts', import.meta.url)), // so that the run knows the version of its grader
  start: (service: ServiceConnection) => service.createLoraTrainingClient({ baseModel, rank, alpha, seed }),
};
await withTrainingRun(record, async ({ service, training, run, checkpoints, signal, afterStep }) => {
  const tokenizer = await training.getTokenizer();
  const scoring = { tokenizer, base: await service.createSamplingClient({ baseModel }), signal };
  const toLearn = await pairsOf('to learn', data.train.as('preference'), scoring);
  const toJudge = await pairsOf('held out', data.heldOut.as('preference'), scoring);
  const loss = dpo({ beta });

  /** Of pairs that are never trained on, a forward pass and the same loss; and a greedy answer to each question, where there is a rule to judge it by. */
  async function judge(step: number): Promise<void> {
    const flat = toJudge.flat();
    const { outputs } = await training.forward(flat.map(withoutReference), 'cross_entropy');
    const { metrics = {} } = loss(
      outputs.map(({ logprobs }) => logprobs),
      flat,
    );
    await run.step(step, metrics, 'held-out');
    const n = toJudge.length;
    const accuracy = accuracyOf(Math.round((metrics['reward/accuracy'] ?? Number.NaN) * n), n);
    console.log(
      `after ${step} steps: held-out pairs: margin ${metrics['reward/margin']?.toFixed(3)}, ${accuracyText(accuracy)}`,
    );
    if (own.data !== undefined) return;
    const sampler = await training.saveWeightsAndGetSamplingClient();
    const evaluation = await evaluate(sampler, {
      ...{ environment, tokenizer, problems: questions.heldOut, maxTokens, signal },
    });
    await run.validation(step, evaluation);
    await run.onFixedSamples({ step, answers: evaluation.answers.slice(0, config.fixed) });
    console.log(
      `after ${step} steps: metric answers: ${accuracyText(evaluation)}, ${evaluation.unparsed} without a unit`,
    );
  }

  if (afterStep === 0) await judge(0);
  using view = createTerminalView({ stream: process.stdout, title: task.name });
  const guard = createGuard({ onAlarm: () => {} }); // the view shows what it raises, and the run keeps it
  const batchOf = shuffledBatches(toLearn, { batchSize, seed });
  const state = () => guard.state;
  const restore = guard.restore.bind(guard);
  for await (const step of resumableSteps({ loop: 'dpo', steps, checkpoints, signal, state, restore })) {
    const batch = batchOf(step).flat();
    const pass = training.forwardBackwardCustom(batch, loss); // queued at once
    const update = training.optimStep({ learningRate, weightDecay: 0, gradClipNorm: 1 }); // queued behind it
    const [passed, updated] = await Promise.all([pass, update]);
    const metrics = {
      ...passed.metrics,
      ...updated.metrics,
      'loss/mean': passed.metrics['loss/sum']! / (batch.length / 2),
    };
    const alarms = guard.look({ step, metrics, data: batch, update: updated });
    await run.onStep({ type: 'step-end', step, metrics, alarms });
    view.onStep({ type: 'step-end', step, totalSteps: steps, metrics, alarms });
    await guard.act(alarms);
  }
  view.close();
  await judge(steps);
  const { modelPackageArn } = await training.saveWeightsForSampler({ description: `${task.name}, ${steps} steps` });
  console.log(`adapter  ${modelPackageArn}`);
  console.log(`run      ${run.folder}`);
});

/** What a forward pass takes of a pair's side. */
function withoutReference({ modelInput, lossFnInputs: { targetTokens, weights } }: Pair[number]) {
  return { modelInput, lossFnInputs: { targetTokens, weights } };
}
