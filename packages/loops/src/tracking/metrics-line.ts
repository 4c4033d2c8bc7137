/** A step as a line of `metrics.jsonl`: its numbers beside its step, type and time. */
import type { Metrics } from '../training/grpo-metrics.js';
import type { TrackedStep } from './tracker.js';

/** What stands beside the metrics, and so can't be the name of one. */
export const lineFields = ['step', 'type', 'time'] as const;

export function metricsLine({ step, type, atMs, metrics }: TrackedStep): Readonly<Record<string, unknown>> {
  return { step, type, time: new Date(atMs).toISOString(), ...metrics };
}

/** Undefined for what is no such line. */
export function readMetricsLine(value: unknown): TrackedStep | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { step, type, time, ...rest } = value as Readonly<Record<string, unknown>>; // true: any object; each field is looked at
  if (typeof step !== 'number' || typeof type !== 'string' || typeof time !== 'string') return undefined;
  const atMs = Date.parse(time);
  if (!Number.isInteger(step) || Number.isNaN(atMs)) return undefined;
  const numbers = Object.entries(rest).filter((entry): entry is [string, number] => typeof entry[1] === 'number');
  const metrics: Metrics = Object.fromEntries(numbers);
  return { step, type, atMs, metrics };
}
