/** The run folder's own tracker: `metrics.jsonl`, which every run has. */
import { join } from 'node:path';
import { cutJsonl, JsonlFile } from '../runs/jsonl-file.js';
import { metricsLine, readMetricsLine } from './metrics-line.js';
import type { TrackedRun, TrackedStep, Tracker, TrackerPlace, TrackerReport } from './tracker.js';

export const metricsName = 'metrics.jsonl';

/** Each step is on the disk when `step` resolves. Steps after the one that a run goes on from are cut off. */
export function jsonlTracker(): Tracker {
  let file: JsonlFile | undefined;
  let sent = 0;
  return {
    name: 'jsonl',
    async start({ folder, resumed }: TrackedRun): Promise<TrackerPlace> {
      const path = join(folder, metricsName);
      if (resumed !== undefined) {
        await cutJsonl(path, (value) => (readMetricsLine(value)?.step ?? 0) > resumed.afterStep);
      }
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
