/**
 * Kahneman–Tversky optimisation (arXiv:2402.01306): from single answers with a thumb up or down, no pairs. Judged by thumbs that are never trained on and,
 * on the questions of this recipe, by the share of greedy answers that are the right word alone.
 *
 * Run: npx tsx recipes/preference-kto/train.ts [--data thumbs.jsonl] [--model ID|DIR] [--url URL] [--max-steps 40] [--seed 1] [--run runs/preference-kto]
 * [--checkpoint-every 10] [--resume runs/preference-kto]
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
  evaluate,
  type JudgedCompletion,
  type KtoRow,
  kto,
  ktoData,
  openDataset,
  recipeOptions,
  resumableSteps,
  type ServiceConnection,
  sftDatum,
  shuffledBatches,
  type Tokenizer,
  textSource,
  withReference,
  withTrainingRun,
} from 'loopwright';
import { config } from './config.js';
import { thumbRows } from './questions.js';
import { environment, heldOut, task, train } from './task.js';

const { baseModel, steps, seed, place, own } = recipeOptions({
  ...{ name: task.name, model: task.model!, steps: config.steps }, // the task names its model
  own: {
    data: 'answers with thumbs as .jsonl, .jsonl.gz or .parquet (default: those of this recipe); a tenth is held out',
  },
});
const { rank, alpha, beta, batchSize, learningRate, maxTokens, maxRowTokens } = config;

const data =
  own.data === undefined
    ? {
        train: datasetOf([textSource(thumbRows(train), { file: 'thumbs to learn' })]),
        heldOut: datasetOf([textSource(thumbRows(heldOut), { file: 'thumbs held out' })]),
      }
    : (await openDataset(own.data)).split({ parts: { train: 0.9, heldOut: 0.1 } });

/** Prompts and answers in tokens, with what was thought of them. */
async function judgedOf(name: string, rows: Dataset<KtoRow>, tokenizer: Tokenizer): Promise<JudgedCompletion[]> {
  const judged: JudgedCompletion[] = [];
  let left = 0;
  for await (const { prompt, completion, label: desirable } of rows) {
    const asked: readonly ChatMessage[] = typeof prompt === 'string' ? [{ role: 'user', content: prompt }] : prompt;
    const said: readonly ChatMessage[] =
      typeof completion === 'string' ? [{ role: 'assistant', content: completion }] : completion;
    const { tokens, assistantMask } = tokenizer.encodeChat([...asked, ...said], { turns: 'last' });
    const [from, to] = [assistantMask.indexOf(true), assistantMask.lastIndexOf(true) + 1];
    if (to > maxRowTokens) left += 1;
    else judged.push({ prompt: tokens.slice(0, from), completion: tokens.slice(from, to), desirable });
  }
  const liked = judged.filter(({ desirable }) => desirable).length;
  console.log(`${name}: ${judged.length} answers, ${liked} liked, ${left} longer than ${maxRowTokens} tokens left out`);
  return judged;
}

const record = {
  ...{ ...place, config: { ...config, baseModel, steps }, seeds: { seed }, data },
  task: fileURLToPath(new URL('task.ts', import.meta.url)), // so that the run knows the version of its grader
  start: (service: ServiceConnection) => service.createLoraTrainingClient({ baseModel, rank, alpha, seed }),
};
await withTrainingRun(record, async ({ service, training, run, checkpoints, signal, afterStep }) => {
  const tokenizer = await training.getTokenizer();
  const base = await service.createSamplingClient({ baseModel });
  const toLearn = await judgedOf('to learn', data.train.as('kto'), tokenizer);
  const toJudge = await judgedOf('held out', data.heldOut.as('kto'), tokenizer);

  // The paper keeps the weights of the liked and of the others, summed, as 1 : 1 to 4 : 3.
  const liked = toLearn.filter(({ desirable }) => desirable).length;
  const loss = kto({ beta, desirableWeight: (toLearn.length - liked) / liked });
  const judgedData = await withReference(toJudge.map(sftDatum), base, { signal });

  /** Whether answers that are never trained on have moved the right way, and a greedy answer to each question where there is a rule to judge it by. */
  async function judge(step: number): Promise<void> {
    const plain = judgedData.map(({ modelInput, lossFnInputs: { targetTokens, weights } }) => ({
      ...{ modelInput, lossFnInputs: { targetTokens, weights } },
    }));
    const { outputs } = await training.forward(plain, 'cross_entropy');
    const moved = outputs.map(({ logprobs }, i) => {
      const { weights, refLogProb } = judgedData[i]!.lossFnInputs; // one output a datum
      return Array.from(weights, Number).reduce((sum, weight, t) => sum + weight * (logprobs[t]! - refLogProb[t]!), 0);
    });
    const mean = (desirable: boolean): number => {
      const own = moved.filter((_, i) => toJudge[i]!.desirable === desirable);
      return (beta * own.reduce((sum, each) => sum + each, 0)) / own.length;
    };
    const n = moved.length;
    const correct = moved.filter((each, i) => (each > 0 ? toJudge[i]!.desirable : each < 0 && !toJudge[i]!.desirable));
    const right = accuracyOf(correct.length, n);
    await run.step(
      step,
      { 'reward/desirable': mean(true), 'reward/undesirable': mean(false), 'reward/accuracy': right.accuracy },
      'held-out',
    );
    const rewards = `reward of the liked ${mean(true).toFixed(3)}, of others ${mean(false).toFixed(3)}`;
    console.log(
      `after ${step} steps: held-out thumbs: ${rewards}, moved the way of their thumb: ${accuracyText(right)}`,
    );
    if (own.data !== undefined) return;
    const sampler = await training.saveWeightsAndGetSamplingClient();
    const evaluation = await evaluate(sampler, { environment, tokenizer, problems: heldOut, maxTokens, signal });
    await run.validation(step, evaluation);
    await run.onFixedSamples({ step, answers: evaluation.answers.slice(0, config.fixed) });
    console.log(
      `after ${step} steps: answers: ${accuracyText(evaluation)}, ${evaluation.n - evaluation.unparsed} a yes or no alone`,
    );
  }

  if (afterStep === 0) await judge(0);
  using view = createTerminalView({ stream: process.stdout, title: task.name });
  const guard = createGuard({ onAlarm: () => {} }); // the view shows what it raises, and the run keeps it
  const batchOf = shuffledBatches(toLearn, { batchSize, seed });
  const state = () => guard.state;
  const restore = guard.restore.bind(guard);
  for await (const step of resumableSteps({ loop: 'kto', steps, checkpoints, signal, state, restore })) {
    const batch = batchOf(step);
    // Each prompt comes with the answer to another too: how much likelier those became tells how far the model has moved.
    const data = await withReference(ktoData(batch), base);
    const pass = training.forwardBackwardCustom(data, loss);
    const update = training.optimStep({ learningRate, weightDecay: 0, gradClipNorm: 1 }); // queued behind it
    const [passed, updated] = await Promise.all([pass, update]);
    const metrics = { ...passed.metrics, ...updated.metrics, 'loss/mean': passed.metrics['loss/sum']! / batch.length };
    const alarms = guard.look({ step, metrics, data, update: updated });
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
