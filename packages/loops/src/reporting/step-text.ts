/** A step in words: the one line of a log, and the parts that the live panel is made of. */
import type { Metrics } from '../training/grpo-metrics.js';

const phases = ['sample', 'reference', 'grade', 'train', 'refresh'] as const;
export type Phase = (typeof phases)[number];

/** Seconds by phase, those that were measured. */
export function phaseSeconds(metrics: Metrics): [Phase, number][] {
  return phases.flatMap((phase) => {
    const ms = metrics[`time/${phase}_ms`];
    return ms === undefined ? [] : [[phase, ms / 1000] as [Phase, number]];
  });
}

/** The numbers of a step, those that were measured, as `name value` pairs. */
export function describeMetrics(metrics: Metrics): string[] {
  const of = (name: string, show: (value: number) => string): string[] => {
    const value = metrics[name];
    return value === undefined ? [] : [show(value)];
  };
  const both = metrics['ratio/min'] !== undefined && metrics['ratio/max'] !== undefined;
  const spread = both ? ` [${metrics['ratio/min']?.toFixed(3)}, ${metrics['ratio/max']?.toFixed(3)}]` : '';
  const deviation = metrics['reward/std_within_group'];
  return [
    ...of('reward/mean', (v) => `reward ${v.toFixed(3)}${deviation === undefined ? '' : ` ±${deviation.toFixed(3)}`}`),
    ...of('loss/mean', (v) => (metrics['reward/mean'] === undefined ? `loss ${v.toFixed(4)}` : '')),
    ...of('kl/base', (v) => `kl ${v.toFixed(4)}`),
    ...of('completion/length_mean', (v) => `length ${v.toFixed(1)}`),
    ...of('ratio/mean', (v) => `ratio ${v.toFixed(3)}${spread}`),
    ...of('groups/dead', (v) => `dead ${v}`),
    ...of('grade/errors', (v) => (v === 0 ? '' : `grader errors ${v}`)),
    ...of('grade/timeouts', (v) => (v === 0 ? '' : `grader timeouts ${v}`)),
    ...of('tokens/sampled', (v) => `sampled ${v}`),
    ...of('tokens/trained', (v) => `trained ${v}`),
  ].filter((text) => text !== '');
}

/** `step 3/30  reward 0.512 ±0.310  …  sample 1.2s  train 0.8s`. */
export function stepLine(step: {
  readonly step: number;
  readonly totalSteps: number;
  readonly metrics: Metrics;
}): string {
  const times = phaseSeconds(step.metrics).map(([phase, seconds]) => `${phase} ${seconds.toFixed(1)}s`);
  return [`step ${step.step}/${step.totalSteps}`, ...describeMetrics(step.metrics), ...times].join('  ');
}

/** `0.883 [0.778, 0.942] n 60`; of a loss, in nats a token. */
export function validationText(metrics: Metrics): string {
  const [name, low, high] =
    metrics['validation/accuracy'] === undefined
      ? ['validation/loss', 'validation/loss_low', 'validation/loss_high']
      : ['validation/accuracy', 'validation/low', 'validation/high'];
  const [value, from, to, n] = [metrics[name!], metrics[low!], metrics[high!], metrics['validation/n']];
  const bounds = from === undefined || to === undefined ? '' : ` [${from.toFixed(3)}, ${to.toFixed(3)}]`;
  return `${name === 'validation/loss' ? 'loss ' : ''}${value?.toFixed(3) ?? '?'}${bounds}${n === undefined ? '' : ` n ${n}`}`;
}

/** `0.8 s`, `42 s`, `3 min 05 s`, `2 h 10 min`. */
export function durationText(ms: number): string {
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const two = (value: number): string => String(value).padStart(2, '0');
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor((seconds % 3600) / 60))} min`;
}

/** A bar of `share` of `columns`. */
export function bar(share: number, columns: number): string {
  const filled = Math.round(Math.min(1, Math.max(0, share)) * columns);
  return '█'.repeat(filled) + '░'.repeat(columns - filled);
}
