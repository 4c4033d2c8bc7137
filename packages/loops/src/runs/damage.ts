/** What of a run folder can't be read: everything else is shown without it, so it has to be told. */
import { join } from 'node:path';
import { metricsName } from '../tracking/jsonl-tracker.js';
import { readMetricsLine } from '../tracking/metrics-line.js';
import { readJsonl } from './jsonl-file.js';
import { checkMet, problemsName } from './met-problems.js';
import type { StoredRun } from './read-run.js';
import { samplesName } from './run.js';
import { alarmsName, checkAlarm } from './run-alarms.js';
import { checkSample } from './run-samples.js';
import { checkSignOff, signOffsName } from './sign-offs.js';

/** A file of a run in which lines can't be read. */
export interface DamagedFile {
  /** In the folder of the run. */
  readonly file: string;
  readonly lines: number;
  /** Number of the first of them, from 1. */
  readonly first: number;
}

const checks: Readonly<Record<string, (value: unknown) => unknown>> = {
  [metricsName]: readMetricsLine,
  [samplesName]: checkSample,
  [problemsName]: checkMet,
  [alarmsName]: checkAlarm,
  [signOffsName]: checkSignOff,
};

/** The last line of a run that was killed, or goes on, may be half written: that is no damage. */
export async function findDamage({ folder, state }: Pick<StoredRun, 'folder' | 'state'>): Promise<DamagedFile[]> {
  const isEnded = state !== 'running' && state !== 'killed';
  const found: DamagedFile[] = [];
  for (const [file, check] of Object.entries(checks)) {
    const numbers: number[] = [];
    for await (const line of readJsonl(join(folder, file), { isEnded })) {
      if (!('value' in line) || check(line.value) === undefined) numbers.push(line.line);
    }
    const [first] = numbers;
    if (first !== undefined) found.push({ file, lines: numbers.length, first });
  }
  return found;
}
