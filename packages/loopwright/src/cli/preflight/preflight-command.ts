/** `loopwright preflight`: whether a task is ready to be trained on, shown. */
import { dirname, join, relative, resolve } from 'node:path';
import {
  defaultTaskModel,
  escapeText,
  type Forecast,
  type PreflightReport,
  preflight,
  resolveSettings,
} from '@loopwright/loops';
import { openPreflightFiles } from '@loopwright/loops/node';
import { connect } from '../../connect.js';
import { listenForInterrupt } from '../../interrupt.js';
import type { Console } from '../console.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { showFindings } from '../findings-text.js';
import { StatusLine } from '../status-line.js';
import { loadTask } from '../task-module.js';
import { percentText } from '../text.js';

export interface PreflightCommandOptions {
  readonly model?: string;
  readonly samples: number;
  readonly prompts: number;
  readonly all?: boolean;
  readonly concurrency: number;
  readonly contextLength?: number;
  readonly seed: number;
  readonly out?: string;
}

export async function preflightCommand(
  path: string,
  { model, samples, prompts: some, all, concurrency, contextLength, seed, out }: PreflightCommandOptions,
  { console, exitWith }: CommandContext,
): Promise<void> {
  const { file, task } = await loadTask(path);
  const baseModel = model ?? task.model ?? defaultTaskModel;
  const { maxTokens, temperature, correctReward } = resolveSettings(task.settings);
  const directory = out === undefined ? join(dirname(file), 'preflight') : resolve(out);
  const kept = { task: task.name, baseModel, samples, seed, maxTokens, temperature, correctReward };
  const files = await openPreflightFiles(directory, kept);
  using interrupt = listenForInterrupt({
    onInterrupt: () => console.note('\nStopping; the same command goes on where this ended.'),
  });
  using status = new StatusLine(console);
  await using service = await connect();
  const sampler = await service.createSamplingClient({ baseModel });
  const tokenizer = await sampler.getTokenizer();
  let measured = files.measured.size;
  const result = await preflight(task, {
    ...{ sampler, tokenizer, samples, concurrency, seed, measured: files.measured, signal: interrupt.signal },
    prompts: all === true ? 'all' : some,
    ...(contextLength === undefined ? {} : { contextLength }),
    onRate: async (rate) => {
      await files.record(rate);
      measured += 1;
      status.show({ event: { type: 'progress', measured }, text: `${measured} prompts measured` });
    },
  });
  status.clear();
  const paths = await files.write(result);
  console.event({ type: 'preflight', model: baseModel, files: paths, ...result.report });
  show(result.report, console);
  console.line();
  for (const [name, target] of Object.entries(paths)) console.line(`${name.padEnd(6)}  ${relative('.', target)}`);
  if (result.report.outcome === 'no-go') exitWith(exitCodes.failed);
}

function show(report: PreflightReport, console: Console): void {
  const { prompts, passRate, histogram, deadGroups, formatGap, tokens, findings, outcome } = report;
  const range = ({ expected, low, high }: Forecast): string => `${expected} (${low} to ${high})`;
  const most = Math.max(1, ...histogram);
  console.line(
    `${console.paint.bold(escapeText(report.task))}: ${prompts.measured} of ${prompts.train} prompts measured`,
  );
  console.line();
  for (const [i, count] of histogram.entries())
    console.line(
      `  ${String(i * 10).padStart(3)} % ${'█'.repeat(Math.round((30 * count) / most)).padEnd(30)} ${count}`,
    );
  console.line();
  const { low, high } = passRate.interval;
  console.table([
    [
      'right',
      `${percentText(passRate.share)} (n = ${passRate.n}, 95 % interval ${percentText(low)} to ${percentText(high)})`,
    ],
    ['10–90 %', `${prompts.useful} of ${prompts.measured} prompts`],
    ['dead groups', `${percentText(deadGroups.expectedShare)} expected, of ${deadGroups.groupSize}`],
    [
      'unreadable',
      `${percentText(formatGap.unparsedShare)}; ${percentText(formatGap.ofParsed)} of the others are right`,
    ],
    ['tokens', `${range(tokens.sampled)} sampled, ${range(tokens.trained)} trained`],
  ]);
  if (findings.length > 0) console.line();
  showFindings(findings, console);
  console.line();
  console.line(outcome === 'go' ? console.paint.green('Go.') : console.paint.red('No go.'));
}
