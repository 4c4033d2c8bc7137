/** Metrics as JSON lines in a file of one's own: one per step, numbers only. */
import { JsonlFile } from '../runs/jsonl-file.js';
import { metricsLine } from '../tracking/metrics-line.js';
import type { Metrics } from '../training/grpo-metrics.js';

/** What both loops report of a step. */
export interface ReportedStep {
  readonly type: string;
  readonly step: number;
  readonly metrics: Metrics;
}

/** An open file; dispose it when the run has ended. */
export interface MetricsLog extends AsyncDisposable {
  /** Appends one line; nothing but step, type, time and metrics is written. Bound, so it can be handed on. */
  readonly onStep: (step: ReportedStep) => Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens `path` for appending; whole lines that are there stay.
 *
 * @param now milliseconds since 1970, written as `time` in ISO form; default the system's clock
 */
export async function openMetricsLog(
  path: string,
  { now = Date.now }: { readonly now?: () => number } = {},
): Promise<MetricsLog> {
  const file = await JsonlFile.open(path);
  return {
    onStep: ({ step, type, metrics }) => file.append([metricsLine({ step, type, metrics, atMs: now() })]),
    close: () => file.close(),
    [Symbol.asyncDispose]: () => file.close(),
  };
}
