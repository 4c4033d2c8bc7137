/** Reading a run folder, also while it is being written. */
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Alarm } from '../guard/alarm.js';
import { metricsName } from '../tracking/jsonl-tracker.js';
import { readMetricsLine } from '../tracking/metrics-line.js';
import type { TrackedStep } from '../tracking/tracker.js';
import { readJsonl } from './jsonl-file.js';
import { samplesName } from './run.js';
import { alarmsName, checkAlarm } from './run-alarms.js';
import { isLocked } from './run-lock.js';
import { type RunRecord, type RunStatus, readRecord, recordName } from './run-record.js';
import { checkSample, type RunSample } from './run-samples.js';

/** A run as it is on the disk. */
export interface StoredRun {
  readonly folder: string;
  readonly record: RunRecord;
  /** `killed`: it is said to be running, and nobody writes to it. */
  readonly state: RunStatus | 'killed';
  /** In the order of steps; of lines of the same step and type, the last. */
  readonly steps: readonly TrackedStep[];
  /** What the guard raised, in that order. */
  readonly alarms: readonly Alarm[];
}

/** Lines that can't be read are left out: {@link findDamage} tells them. @throws `not_found`, `data_invalid` */
export async function readRun(folder: string): Promise<StoredRun> {
  const path = resolve(folder);
  const record = await readRecord(path);
  const byStep = new Map<string, TrackedStep>();
  for await (const line of readJsonl(join(path, metricsName))) {
    const step = 'value' in line ? readMetricsLine(line.value) : undefined;
    if (step !== undefined) byStep.set(`${familyOf(step)} ${step.step}`, step);
  }
  const steps = [...byStep.values()].sort((a, b) => a.step - b.step);
  const state = record.status === 'running' && !(await isLocked(path)) ? 'killed' : record.status;
  const alarms: Alarm[] = [];
  for await (const line of readJsonl(join(path, alarmsName))) {
    const alarm = 'value' in line ? checkAlarm(line.value) : undefined;
    if (alarm !== undefined) alarms.push(alarm);
  }
  return { folder: path, record, state, steps, alarms };
}

/** A step that was skipped and one that was not are the same step. */
function familyOf({ type }: TrackedStep): string {
  return type.startsWith('step-') ? 'step' : type;
}

/** The samples of a run, in the order in which they were kept. Lines that can't be read are left out, as lines half written are. */
export async function* readSamples(folder: string): AsyncGenerator<RunSample> {
  for await (const line of readJsonl(join(folder, samplesName))) {
    const sample = 'value' in line ? checkSample(line.value) : undefined;
    if (sample !== undefined) yield sample;
  }
}

export interface FoundRuns {
  /** Oldest first. */
  readonly runs: readonly StoredRun[];
  /** Folders whose record can't be read, with why. */
  readonly broken: readonly { readonly folder: string; readonly error: unknown }[];
}

/** Folders are looked into this deep. */
const maxDepth = 3;

/** All runs in a folder and the folders below it. A folder that isn't there has none. */
export async function findRuns(folder: string): Promise<FoundRuns> {
  const runs: StoredRun[] = [];
  const broken: { folder: string; error: unknown }[] = [];
  for (const found of await foldersOfRuns(resolve(folder), 0)) {
    try {
      runs.push(await readRun(found));
    } catch (error) {
      broken.push({ folder: found, error });
    }
  }
  runs.sort((a, b) => a.record.startedAt.localeCompare(b.record.startedAt) || a.folder.localeCompare(b.folder));
  return { runs, broken };
}

async function foldersOfRuns(folder: string, depth: number): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  if (entries.some((entry) => entry.name === recordName && entry.isFile())) return [folder];
  if (depth === maxDepth) return [];
  const below = entries.filter(
    (entry) => entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.'),
  );
  const found = await Promise.all(below.map(({ name }) => foldersOfRuns(join(folder, name), depth + 1)));
  return found.flat();
}
