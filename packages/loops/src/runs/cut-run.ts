/** What a run folder keeps of steps that are done again: nothing. */
import { join } from 'node:path';
import { metricsName } from '../tracking/jsonl-tracker.js';
import { readMetricsLine } from '../tracking/metrics-line.js';
import { dropCheckpointsAfter } from './checkpoint-file.js';
import { cutJsonl } from './jsonl-file.js';
import { checkMet, problemsName } from './met-problems.js';
import { samplesName } from './run.js';
import { alarmsName, checkAlarm } from './run-alarms.js';
import { checkSample } from './run-samples.js';

export interface CutAt {
  /** The last step that stays; −1 where none does. */
  readonly lastKept: number;
  /** What was measured after that step is measured again, so it goes too. */
  readonly measuresAgain: boolean;
}

/** Checkpoints first: what is cut then is never gone on from. @throws write errors */
export async function cutRun(folder: string, { lastKept, measuresAgain }: CutAt): Promise<void> {
  const isLater = (step: number, isOfStep: boolean): boolean =>
    step > lastKept || (measuresAgain && !isOfStep && step === lastKept);
  await dropCheckpointsAfter(folder, lastKept);
  // What is met again at the last step that stays is met already.
  await cutJsonl(join(folder, problemsName), (value) => (checkMet(value)?.step ?? 0) > lastKept);
  await cutJsonl(join(folder, metricsName), (value) => {
    const line = readMetricsLine(value);
    return line !== undefined && isLater(line.step, line.type.startsWith('step-'));
  });
  await cutJsonl(join(folder, samplesName), (value) => {
    const sample = checkSample(value);
    return sample !== undefined && isLater(sample.step, sample.type === 'train');
  });
  await cutJsonl(join(folder, alarmsName), (value) => isLater(checkAlarm(value)?.step ?? -1, true));
}
