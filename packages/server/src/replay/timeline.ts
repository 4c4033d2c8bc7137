/** A session's operations in the one order in which replays run and comparisons read them: pure, from the log alone. */
import type { VersionId } from '@loopwright/protocol';
import type { OperationRecord, SamplingRecord, TrainingRecord } from '../operations/operation-record.js';

/** A training operation, and the sampling operations that read the weights it saved. */
export interface Turn {
  /** Undefined for the first turn alone: sampling from the base, or from versions of other sessions. */
  readonly training: TrainingRecord | undefined;
  /** In the order of their acceptance. */
  readonly sampling: readonly SamplingRecord[];
}

/**
 * Training operations by their numbers. What samples from a version of this session follows the save that made it, since it can't
 * run earlier and nothing changes a version later.
 */
export function timelineOf(records: readonly OperationRecord[]): Turn[] {
  const training = records
    .filter((record) => record.kind === 'training')
    .sort((a, b) => a.sequenceNumber - b.sequenceNumber);
  const saves = savesOf(training);
  const readers = new Map<TrainingRecord | undefined, SamplingRecord[]>();
  for (const record of records) {
    if (record.kind !== 'sampling') continue;
    const save = record.readsVersion === null ? undefined : saves.get(record.readsVersion);
    readers.set(save, [...(readers.get(save) ?? []), record]);
  }
  return [undefined, ...training].map((record) => ({ training: record, sampling: readers.get(record) ?? [] }));
}

/** The saves that made a version. */
export function savesOf(training: readonly TrainingRecord[]): ReadonlyMap<VersionId, TrainingRecord> {
  return new Map(
    training.flatMap((record) => {
      const { version } = record.resolved;
      return record.status === 'Completed' && version !== undefined ? [[version, record] as const] : [];
    }),
  );
}

/** Where an operation stands: `5` for training operation 5, `5.2` for the second that samples from what 5 saved, `0.1` for the first of other weights. */
export function placeOf({ training }: Turn, samplingIndex?: number): string {
  const number = String(training?.sequenceNumber ?? 0);
  return samplingIndex === undefined ? number : `${number}.${samplingIndex + 1}`;
}
