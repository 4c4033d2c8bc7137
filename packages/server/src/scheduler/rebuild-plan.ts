/** What has to be done again so that a fresh engine session equals one that was lost: pure, from the log alone. */
import { LoopwrightError, type VersionId } from '@loopwright/protocol';
import type { TrainingRecord } from '../operations/operation-record.js';
import { engineMsOf, type RedoKind } from '../snapshots/redo-cost.js';
import type { SnapshotRecord } from '../snapshots/snapshot-store.js';
import { dropsGradient } from './endings.js';
import type { Outcome } from './write-ending.js';

/** A kept state that a rebuild begins with. */
export type Anchor =
  | { readonly type: 'version'; readonly version: VersionId; readonly loadOptimizer: boolean }
  | { readonly type: 'snapshot'; readonly snapshot: SnapshotRecord };

export interface RebuildPlan {
  /** State to load first; absent begins from the seed. */
  readonly anchor?: Anchor;
  /** In order. `clear` drops the gradient that a failed step had dropped. */
  readonly replay: readonly { readonly type: 'operation' | 'clear'; readonly record: TrainingRecord }[];
}

export interface KeptStates {
  readonly isAvailable: (version: VersionId) => boolean;
  /** Newest first. */
  readonly snapshots: readonly SnapshotRecord[];
}

/** Plans a rebuild from the training operations whose turn is over, in sequence order: from a saved state or a snapshot, whichever leaves less to do. */
export function planRebuild(records: readonly TrainingRecord[], { isAvailable, snapshots }: KeptStates): RebuildPlan {
  const fromVersion = planFromVersion(records, isAvailable);
  const [snapshot] = snapshots;
  if (snapshot === undefined) return fromVersion;
  const after = records.filter(({ sequenceNumber }) => sequenceNumber >= snapshot.nextSequenceNumber);
  const fromSnapshot: RebuildPlan = { anchor: { type: 'snapshot', snapshot }, replay: replayOf(after) };
  const [a, b] = [costMs(fromSnapshot), costMs(fromVersion)];
  const isLess = a < b || (a === b && fromSnapshot.replay.length < fromVersion.replay.length);
  return isLess ? fromSnapshot : fromVersion;
}

function costMs({ replay }: RebuildPlan): number {
  return replay.reduce((sum, { type, record }) => (type === 'clear' ? sum : sum + engineMsOf(record)), 0);
}

/**
 * It begins at the last state that was saved or loaded and is still there. Saves keep the pending gradient and states do not hold it, so
 * the passes before a saved state that no step had used yet are run again too. Their weights are those of the state: only steps and loads change weights.
 */
function planFromVersion(
  records: readonly TrainingRecord[],
  isAvailable: (version: VersionId) => boolean,
): RebuildPlan {
  for (let index = records.length - 1; index >= 0; index--) {
    const record = records[index]!;
    if (record.status !== 'Completed') continue;
    const after = replayOf(records.slice(index + 1));
    if (record.type === 'load-state' && record.readsVersion !== null && isAvailable(record.readsVersion)) {
      const loadOptimizer = record.resolved.loadOptimizer === true;
      return { anchor: { type: 'version', version: record.readsVersion, loadOptimizer }, replay: after };
    }
    const { version } = record.resolved;
    if (record.type === 'save-state' && version !== undefined && isAvailable(version)) {
      const pending = pendingPasses(records.slice(0, index));
      return { anchor: { type: 'version', version, loadOptimizer: true }, replay: [...pending, ...after] };
    }
  }
  return { replay: replayOf(records) };
}

function replayOf(records: readonly TrainingRecord[]): RebuildPlan['replay'] {
  return records.flatMap((record): RebuildPlan['replay'] => {
    if (clearsGradient(record)) return [{ type: 'clear', record }];
    return record.status === 'Completed' && changesState(record) ? [{ type: 'operation', record }] : [];
  });
}

/** Passes at the end of the list whose gradient nothing has used or dropped. */
function pendingPasses(records: readonly TrainingRecord[]): RebuildPlan['replay'] {
  const ends = records.map(
    (record) => clearsGradient(record) || (record.status === 'Completed' && usesGradient(record)),
  );
  return replayOf(records.slice(ends.lastIndexOf(true) + 1));
}

function changesState({ type }: TrainingRecord): boolean {
  return type === 'forward-backward' || type === 'optim-step' || type === 'load-state';
}

function usesGradient({ type }: TrainingRecord): boolean {
  return type === 'optim-step' || type === 'load-state';
}

function clearsGradient({ type, status, error }: TrainingRecord): boolean {
  return status === 'Failed' && error !== null && dropsGradient(type, error.code);
}

/** What running an operation means for what is to be run again. */
export function redoKind(type: TrainingRecord['type'], outcome: Outcome): RedoKind {
  if (!LoopwrightError.isInstance(outcome)) return 'completed';
  return dropsGradient(type, outcome.code) ? 'clears' : 'failed';
}
