/** Metrics of a run as JSON lines: one per step, numbers only. */
import { type FileHandle, open } from 'node:fs/promises';
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
 * Opens `path` for appending; lines that are there stay.
 *
 * @param now milliseconds since 1970, written as `time` in ISO form; default the system's clock
 */
export async function openMetricsLog(
  path: string,
  { now = Date.now }: { readonly now?: () => number } = {},
): Promise<MetricsLog> {
  const file = await open(path, 'a');
  let closed = false;
  const close = async (): Promise<void> => {
    if (closed) return;
    closed = true;
    await file.close();
  };
  return {
    onStep: (step) => appendStep(file, step, now()),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function appendStep(file: FileHandle, { step, type, metrics }: ReportedStep, time: number): Promise<void> {
  await file.appendFile(`${JSON.stringify({ step, type, time: new Date(time).toISOString(), ...metrics })}\n`);
}
