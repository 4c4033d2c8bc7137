/** A run as it is seen in a terminal: a panel that is redrawn in place, or plain lines where the output is no terminal. */
import { createLogUpdate } from 'log-update';
import picocolors from 'picocolors';
import { escapeText, truncateText } from '../escape-text.js';
import { type Alarm, alarmText } from '../guard/alarm.js';
import type { Metrics } from '../training/grpo-metrics.js';
import type { Rollout } from '../training/rollouts.js';
import { bar, describeMetrics, phaseSeconds, sparkline, stepLine } from './step-text.js';

/** A step of either loop. */
export interface ShownStep {
  readonly type: 'step-end' | 'step-skipped';
  readonly step: number;
  readonly totalSteps: number;
  readonly metrics: Metrics;
  readonly reason?: string;
  /** Shown in the panel until the end; plain lines have one for each. */
  readonly alarms?: readonly Alarm[];
  readonly groups?: readonly {
    readonly problem: { readonly question: string };
    readonly rollouts: readonly Rollout[];
  }[];
}

export interface TerminalViewOptions {
  /** Such as `process.stdout`. */
  readonly stream: NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };
  readonly title: string;
  /** Redraw in place; default whether the stream is a terminal. */
  readonly live?: boolean;
  /** Default as `live`. */
  readonly color?: boolean;
  /** Sampled answers to show in the panel; default 4. */
  readonly samples?: number;
}

/** Shows steps as they end. Disposing leaves the last panel standing and gives the cursor back. */
export interface TerminalView extends Disposable {
  /** Bound, so it can be handed to a loop. */
  readonly onStep: (step: ShownStep) => void;
  close(): void;
}

/** What a model wrote is escaped before it is drawn, so it can't write to the terminal. */
export function createTerminalView(options: TerminalViewOptions): TerminalView {
  const { stream, live = stream.isTTY === true } = options;
  return live ? createPanel(options) : createLines(stream);
}

function createLines(stream: NodeJS.WritableStream): TerminalView {
  const close = (): void => undefined;
  return {
    onStep: (step) => {
      stream.write(`${stepLine(step)}${step.type === 'step-skipped' ? `  skipped: ${step.reason ?? ''}` : ''}\n`);
      for (const alarm of step.alarms ?? []) stream.write(`${escapeText(alarmText(alarm))}\n`);
    },
    close,
    [Symbol.dispose]: close,
  };
}

function createPanel({ stream, title, color = true, samples = 4 }: TerminalViewOptions): TerminalView {
  // true: log-update asks for a WriteStream, of which it uses only write, columns and rows
  const draw = createLogUpdate(stream as NodeJS.WriteStream);
  const paint = picocolors.createColors(color);
  const curve: number[] = [];
  const skipped: number[] = [];
  const alarms: Alarm[] = [];
  let isClosed = false;
  const close = (): void => {
    if (isClosed) return;
    isClosed = true;
    draw.done();
  };
  return {
    onStep: (step) => {
      if (isClosed) return;
      const columns = Math.min(stream.columns ?? 80, 120);
      const isReward = step.metrics['reward/mean'] !== undefined;
      const value = step.metrics['reward/mean'] ?? step.metrics['loss/mean'];
      if (value !== undefined) curve.push(value);
      if (step.type === 'step-skipped') skipped.push(step.step);
      alarms.push(...(step.alarms ?? []));
      const range = isReward ? { low: Math.min(0, ...curve), high: Math.max(1, ...curve) } : extent(curve);
      const width = Math.max(10, columns - 30);
      const lines = [
        `${paint.bold(escapeText(title))}  step ${step.step}/${step.totalSteps}  ${paint.dim(bar(step.step / step.totalSteps, 20))}`,
        `${(isReward ? 'reward' : 'loss').padEnd(9)} ${paint.green(sparkline(curve, { columns: width, ...range }))} ${value?.toFixed(3) ?? ''}`,
        ...wrapParts(describeMetrics(step.metrics), columns),
        ...phaseLines(step.metrics).map((line) => paint.dim(line)),
        ...(skipped.length === 0
          ? []
          : [paint.yellow(`skipped steps: ${skipped.length} (${step.reason ?? 'see the log'})`)]),
        ...alarms.slice(-shownAlarms).map((alarm) => paint.yellow(truncateText(escapeText(alarmText(alarm)), columns))),
        ...sampleLines(step, samples, columns).map(([isGood, line]) => (isGood ? paint.cyan(line) : paint.dim(line))),
      ];
      draw(lines.join('\n'));
    },
    close,
    [Symbol.dispose]: close,
  };
}

/** The last ones, in the panel. */
const shownAlarms = 4;

function extent(values: readonly number[]): { low: number; high: number } {
  return { low: Math.min(...values), high: Math.max(...values) };
}

/** Pairs on as few lines as fit. */
function wrapParts(parts: readonly string[], columns: number): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + part.length + 2 <= columns) lines[lines.length - 1] = `${last}  ${part}`;
    else lines.push(part);
  }
  return lines;
}

function phaseLines(metrics: Metrics): string[] {
  const phases = phaseSeconds(metrics);
  const total = phases.reduce((sum, [, seconds]) => sum + seconds, 0);
  return phases.map(
    ([phase, seconds]) => `${phase.padEnd(9)} ${bar(seconds / (total || 1), 20)} ${seconds.toFixed(2)} s`,
  );
}

/** The first answers of the step's first groups, escaped and cut to the line. */
function sampleLines({ groups = [] }: ShownStep, count: number, columns: number): [boolean, string][] {
  return groups.slice(0, count).flatMap(({ problem, rollouts }) =>
    rollouts.slice(0, 1).map(({ text, grade }): [boolean, string] => {
      const mark = grade.status === 'ok' ? `reward ${grade.reward}` : grade.status;
      const shown = truncateText(`${escapeText(problem.question)} → ${escapeText(text)}`, Math.max(10, columns - 20));
      return [grade.status === 'ok' && grade.reward > 0, `  ${shown}  (${mark})`];
    }),
  );
}
