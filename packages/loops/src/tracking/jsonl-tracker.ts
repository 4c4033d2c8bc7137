/** The run folder's own tracker: `metrics.jsonl`, which every run has. */
import { join } from 'node:path';
import { JsonlFile } from '../runs/jsonl-file.js';
import { metricsLine } from './metrics-line.js';
import type { TrackedRun, TrackedStep, Tracker, TrackerPlace, TrackerReport } from './tracker.js';

export const metricsName = 'metrics.jsonl';

/** Each step is on the disk when `step` resolves. Where a run goes on, what is done again is cut off already. */
export function jsonlTracker(): Tracker {
  let file: JsonlFile | undefined;
  let sent = 0;
  return {
    name: 'jsonl',
    async start({ folder }: TrackedRun): Promise<TrackerPlace> {
      const path = join(folder, metricsName);
      file = await JsonlFile.open(path);
      return { link: path };
    },
    async step(step: TrackedStep): Promise<void> {
      await file?.append([metricsLine(step)]);
      sent += 1;
    },
    async finish(): Promise<TrackerReport> {
      await file?.close();
      return { sent, lost: 0 };
    },
  };
}
