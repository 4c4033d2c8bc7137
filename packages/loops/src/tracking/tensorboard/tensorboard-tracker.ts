/** Event files for TensorBoard. */
import { join } from 'node:path';
import { type Alarm, alarmText } from '../../guard/alarm.js';
import type { TrackedRun, TrackedStep, Tracker, TrackerPlace, TrackerReport } from '../tracker.js';
import { metricsEvent, restartEvent, textEvent } from './event.js';
import { EventFile } from './event-file.js';

export interface TensorBoardOptions {
  /** Default: `tensorboard` in the run folder. */
  readonly folder?: string;
}

/**
 * Writes the numbers of each step, and settings and alarms as texts, to an event file: `tensorboard --logdir runs` shows them. A run that goes on tells
 * readers to forget what they have of the steps that it does again.
 *
 * @example
 * await using run = await openRun({ folder: 'runs/math', config, trackers: [tensorBoardTracker()] });
 */
export function tensorBoardTracker({ folder }: TensorBoardOptions = {}): Tracker {
  let file: EventFile | undefined;
  let sent = 0;
  return {
    name: 'tensorboard',
    async start({ folder: own, config, tags, startedAtMs, resumed }: TrackedRun): Promise<TrackerPlace> {
      const place = folder ?? join(own, 'tensorboard');
      const atMs = resumed?.atMs ?? startedAtMs;
      file = await EventFile.open(place, atMs);
      const text = [config, tags].map((value) => inMarkdown(JSON.stringify(value, null, 2))).join('\n\n');
      await file.append([
        ...(resumed === undefined ? [] : [restartEvent({ atMs, step: resumed.afterStep + 1 })]),
        textEvent({ atMs, step: Math.max(0, resumed?.afterStep ?? 0) }, { name: 'settings', text }),
      ]);
      return { link: place };
    },
    async step({ step, atMs, metrics, alarms = [] }: TrackedStep): Promise<void> {
      const hasNumbers = Object.keys(metrics).length > 0;
      await file?.append([
        ...(hasNumbers ? [metricsEvent({ step, atMs }, metrics)] : []),
        ...alarms.map((alarm) => alarmEvent(alarm, atMs)),
      ]);
      sent += 1;
    },
    async finish(): Promise<TrackerReport> {
      await file?.close();
      return { sent, lost: 0 };
    },
  };
}

/** A text under the alarm's own name, so that its steps stand below each other. */
function alarmEvent(alarm: Alarm, atMs: number): Uint8Array {
  const { name, step } = alarm;
  return textEvent({ step, atMs }, { name, text: alarmText(alarm) });
}

/** Indented by four: code, of which nothing is markup. */
function inMarkdown(text: string): string {
  return text
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n');
}
