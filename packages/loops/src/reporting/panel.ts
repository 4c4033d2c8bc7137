/** The live panel: what a run has come to, line by line. */
import type picocolors from 'picocolors';
import type { EpisodeRollout } from '../episodes/run-episode.js';
import { displayWidth, escapeText, truncateText } from '../escape-text.js';
import { type Alarm, alarmText } from '../guard/alarm.js';
import type { Metrics } from '../training/grpo-metrics.js';
import type { Rollout } from '../training/rollouts.js';
import { areaChart } from './area-chart.js';
import { bar, describeMetrics, durationText, phaseSeconds, validationText } from './step-text.js';
import type { ShownStep, ShownValidation } from './terminal-view.js';

/** What is kept of the steps so far. */
export interface PanelState {
  readonly title: string;
  readonly step: ShownStep | undefined;
  /** Rewards, or losses. */
  readonly curve: readonly number[];
  /** Milliseconds of the last steps. */
  readonly stepTimes: readonly number[];
  readonly skipped: number;
  /** The last ones. */
  readonly alarms: readonly Alarm[];
  readonly validations: readonly ShownValidation[];
  readonly totalSteps: number;
}

export interface PanelSpace {
  readonly columns: number;
  readonly rows: number;
  /** Answers to show. */
  readonly samples: number;
  readonly paint: ReturnType<typeof picocolors.createColors>;
}

const chartRows = 4;
/** Before the curve: the name of its axis. */
const margin = 8;

export function panelLines(state: PanelState, { columns, rows, samples, paint }: PanelSpace): string[] {
  const { step } = state;
  const cutToFit = (line: string): string => truncateText(line, columns);
  const head = [
    cutToFit(headLine(state)),
    ...validationLines(state, columns).map((line) => paint.magenta(cutToFit(line))),
    ...chartLines(state, columns).map(([axis, line]) => `${paint.dim(axis)}${paint.green(line)}`),
    ...(step === undefined ? [] : wrapParts(describeMetrics(step.metrics), columns)),
    ...(step === undefined ? [] : phaseLines(step.metrics, columns).map((line) => paint.dim(line))),
    ...warningLines(state).map((line) => paint.yellow(cutToFit(line))),
  ];
  const [first = '', ...others] = head;
  const answers = step === undefined ? [] : sampleLines(step, samples, columns);
  // Answers go first where the window is low: what scrolls out of it can't be drawn over.
  return [
    paint.bold(first),
    ...others,
    ...answers.map(([isGood, line]) => (isGood ? paint.cyan(line) : paint.dim(line))),
  ].slice(0, Math.max(1, rows - 1));
}

/** `grpo  step 12/30  ████░░░░  1.4 s a step, about 25 s left`. */
function headLine({ title, step, totalSteps, stepTimes }: PanelState): string {
  const at = step?.step ?? 0;
  const known = stepTimes.slice(-10);
  const perStep = known.reduce((sum, ms) => sum + ms, 0) / known.length;
  const left = totalSteps - at;
  const time =
    known.length === 0
      ? ''
      : `  ${durationText(perStep)} a step${left === 0 ? '' : `, about ${durationText(perStep * left)} left`}`;
  return `${escapeText(title)}  step ${at}/${totalSteps}  ${bar(totalSteps === 0 ? 0 : at / totalSteps, 20)}${time}`;
}

/** The newest result, and how it came about. */
function validationLines({ validations }: PanelState, columns: number): string[] {
  const last = validations.at(-1);
  if (last === undefined) return [];
  const way = validations.slice(-6, -1).flatMap(({ metrics }) => {
    const value = metrics['validation/accuracy'] ?? metrics['validation/loss'];
    return value === undefined ? [] : [value.toFixed(3)];
  });
  const text = `held-out ${validationText(last.metrics)} at step ${last.step}`;
  const whole = way.length === 0 ? text : `${text}; before ${way.join(' → ')}`;
  return [displayWidth(whole) <= columns ? whole : text];
}

function chartLines({ curve, step, totalSteps }: PanelState, columns: number): [string, string][] {
  const isReward = step?.metrics['reward/mean'] !== undefined;
  const [least, most] = [Math.min(...curve), Math.max(...curve)];
  if (curve.length === 0) return [];
  const low = isReward ? Math.min(0, least) : least;
  const high = isReward ? Math.max(1, most) : most;
  const options = { columns: Math.max(10, columns - margin), rows: chartRows, low, high };
  const names = [high.toPrecision(3), isReward ? 'reward' : 'loss', '', low === 0 ? '0' : low.toPrecision(3)];
  // All steps of the run fill the width, where they fit.
  const each = Math.max(1, Math.floor(options.columns / Math.max(1, totalSteps)));
  const wide = curve.flatMap((value) => new Array<number>(each).fill(value));
  return areaChart(wide, options).map((line, i) => [
    `${(names[i] ?? '').slice(0, margin - 1).padStart(margin - 1)} `,
    line,
  ]);
}

/** Pairs on as few lines as fit. */
function wrapParts(parts: readonly string[], columns: number): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + part.length + 2 <= columns) lines[lines.length - 1] = `${last}  ${part}`;
    else lines.push(truncateText(part, columns));
  }
  return lines;
}

function phaseLines(metrics: Metrics, columns: number): string[] {
  const phases = phaseSeconds(metrics);
  const total = phases.reduce((sum, [, seconds]) => sum + seconds, 0);
  const width = Math.max(5, Math.min(20, columns - 22));
  const busy = metrics['engine/busy_share'];
  return [
    ...phases.map(
      ([phase, seconds]) => `${phase.padEnd(9)} ${bar(seconds / (total || 1), width)} ${seconds.toFixed(2)} s`,
    ),
    ...(busy === undefined ? [] : [`${'engine'.padEnd(9)} ${bar(busy, width)} ${(busy * 100).toFixed(0)} % busy`]),
  ];
}

function warningLines({ step, skipped, alarms }: PanelState): string[] {
  const { warnings = [] } = step ?? {};
  return [
    ...(skipped === 0 ? [] : [`skipped steps: ${skipped} (${step?.reason ?? 'see the log'})`]),
    ...alarms.map(alarmText),
    ...warnings,
  ].map((line) => escapeText(line));
}

/** The first answers of the step's first groups, escaped and cut to the line. */
function sampleLines({ groups = [] }: ShownStep, count: number, columns: number): [boolean, string][] {
  return groups.slice(0, count).flatMap(({ problem, rollouts }) =>
    rollouts.slice(0, 1).map((rollout): [boolean, string] => {
      const mark = markOf(rollout);
      const asked = problem.question === undefined ? '' : `${escapeText(problem.question)} → `;
      const shown = truncateText(`${asked}${escapeText(textOf(rollout))}`, Math.max(10, columns - mark.length - 6));
      return [(rollout.reward ?? 0) > 0, truncateText(`  ${shown}  (${mark})`, columns)];
    }),
  );
}

/** The answer; of an episode, the last. */
function textOf(rollout: Rollout | EpisodeRollout): string {
  return 'turns' in rollout ? (rollout.turns.at(-1)?.turn.text ?? '') : rollout.text;
}

function markOf(rollout: Rollout | EpisodeRollout): string {
  if (rollout.reward !== undefined) return `reward ${Number(rollout.reward.toPrecision(3))}`;
  if ('turns' in rollout) return rollout.grade?.status ?? rollout.status;
  const { grade } = rollout;
  return grade.status === 'ok' ? `reward ${grade.reward}` : grade.status;
}
