/** `loopwright preflight`: whether a task is ready to be trained on, shown. */
import { dirname, join, relative, resolve } from 'node:path';
import { counted, defaultTaskModel, preflight, resolveSettings } from '@loopwright/loops';
import { graderVersion, openPreflightFiles, readPrices } from '@loopwright/loops/node';
import { connect } from '../../connect.js';
import { listenForInterrupt } from '../../interrupt.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { hanging } from '../hanging.js';
import { StatusLine } from '../status-line.js';
import { loadTask } from '../task-module.js';
import { TaskWatch } from '../task-watch.js';
import { formatForecastText } from './format-gap-text.js';
import { predictedModel, pricesOf } from './predict.js';
import { showPreflight } from './preflight-text.js';

export interface PreflightCommandOptions {
  readonly model?: string;
  readonly samples: number;
  readonly prompts: number;
  readonly all?: boolean;
  readonly concurrency: number;
  readonly contextLength?: number;
  readonly seed: number;
  readonly out?: string;
  /** Forget earlier measurements. */
  readonly fresh?: boolean;
  /** Seconds of a call of the grader or the world. */
  readonly timeout: number;
  /** False: no steps are measured. */
  readonly time: boolean;
  /** What the form of answers is worth is measured. */
  readonly formatGap?: boolean;
  /** Of one answer at most, with it. */
  readonly draws: number;
  /** A file. */
  readonly prices?: string;
}

export async function preflightCommand(
  path: string,
  {
    model,
    samples,
    prompts,
    all,
    concurrency,
    contextLength,
    seed,
    out,
    time,
    formatGap = false,
    draws,
    prices,
    fresh = false,
    timeout,
  }: PreflightCommandOptions,
  context: CommandContext,
): Promise<void> {
  const { console, exitWith } = context;
  const { file, task } = await loadTask(path);
  const baseModel = model ?? task.model ?? defaultTaskModel;
  const { maxTokens, temperature, correctReward, rank, maxTurns } = resolveSettings(task.settings);
  const table = prices === undefined ? undefined : await readPrices(prices);
  const directory = out === undefined ? join(dirname(file), 'preflight') : resolve(out);
  const kept = { task: task.name, baseModel, samples, seed, maxTokens, temperature, correctReward, maxTurns };
  const { sha256: module } = await graderVersion(file);
  await using files = await openPreflightFiles(directory, { ...kept, module }, { fresh });
  using interrupt = listenForInterrupt({
    onInterrupt: () => console.note('\nStopping.'),
    remedy: 'the same command goes on where this ended',
  });
  using status = new StatusLine(console);
  await using service = await connect();
  const predicted = await predictedModel(baseModel, { rank, isEmbedded: service.dataDir !== undefined }, context);
  const sampler = await service.createSamplingClient({ baseModel });
  const tokenizer = await sampler.getTokenizer();
  const training = time ? await service.createLoraTrainingClient({ baseModel, rank, seed }) : undefined;
  const limit = contextLength ?? predicted?.contextLength;
  let measured = files.measured.size;
  let forms = 0;
  using watch = new TaskWatch(console, { limitMs: timeout * 1000 });
  const result = await preflight(watch.over(task), {
    ...{ sampler, tokenizer, samples, concurrency, seed, measured: files.measured, signal: interrupt.signal },
    forms: files.forms,
    prompts: all === true ? 'all' : prompts,
    ...(limit === undefined ? {} : { contextLength: limit }),
    ...(training === undefined ? {} : { training }),
    ...(files.step === undefined ? {} : { step: files.step }),
    ...(predicted === undefined ? {} : { memory: predicted.memory }),
    ...(table === undefined ? {} : { prices: pricesOf(table, baseModel) }),
    onRate: async (rate) => {
      await files.record(rate);
      measured += 1;
      status.show({ event: { type: 'progress', measured }, text: `${counted(measured, 'prompt')} measured` });
    },
    onStep: (step) => files.recordStep(step),
    ...(formatGap
      ? {
          formatGap: {
            mostDraws: draws,
            onForecast: (forecast) => {
              status.clear();
              console.event({ type: 'format-gap-forecast', ...forecast });
              if (!console.json && forecast.answers > 0)
                console.note(hanging('', formatForecastText(forecast), console.stderr));
            },
            onForm: async (form) => {
              await files.recordForm(form);
              forms += 1;
              status.show({
                event: { type: 'progress', forms },
                text: `${counted(forms, 'prompt')} drawn until readable`,
              });
            },
          },
        }
      : {}),
  }).finally(() => {
    status.clear();
    watch.tellFirstFailure();
  });
  const paths = await files.write(result);
  console.event({ type: 'preflight', model: baseModel, files: paths, ...result.report });
  showPreflight(result.report, console);
  console.line();
  for (const [name, target] of Object.entries(paths)) console.line(`${name.padEnd(6)}  ${relative('.', target)}`);
  if (result.report.outcome === 'no-go') exitWith(exitCodes.failed);
}
