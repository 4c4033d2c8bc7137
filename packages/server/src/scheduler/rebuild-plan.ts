/** What has to be done again so that a fresh engine session equals one that was lost: pure, from the log alone. */
import type { VersionId } from '@loopwright/protocol';
import type { TrainingRecord } from '../operations/operation-record.js';

export interface RebuildPlan {
  /** State to load first; absent begins from the seed. */
  readonly anchor?: { readonly version: VersionId; readonly loadOptimizer: boolean };
  /** In order. `clear` drops the gradient that a failed step had dropped. */
  readonly replay: readonly { readonly type: 'operation' | 'clear'; readonly record: TrainingRecord }[];
}

/**
 * Plans a rebuild from the training operations whose turn is over, in sequence order.
 *
 * It begins at the last state that was saved or loaded and is still there. Saves keep the pending gradient and states do not hold it, so
 * the passes before a saved state that no step had used yet are run again too. Their weights are those of the state: only steps and loads change weights.
 */
export function planRebuild(
  records: readonly TrainingRecord[],
  isAvailable: (version: VersionId) => boolean,
): RebuildPlan {
  for (let index = records.length - 1; index >= 0; index--) {
    const record = records[index]!;
    if (record.status !== 'Completed') continue;
    const after = replayOf(records.slice(index + 1));
    if (record.type === 'load-state' && record.readsVersion !== null && isAvailable(record.readsVersion)) {
      const loadOptimizer = record.resolved.loadOptimizer === true;
      return { anchor: { version: record.readsVersion, loadOptimizer }, replay: after };
    }
    const { version } = record.resolved;
    if (record.type === 'save-state' && version !== undefined && isAvailable(version)) {
      const pending = pendingPasses(records.slice(0, index));
      return { anchor: { version, loadOptimizer: true }, replay: [...pending, ...after] };
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

/** A step drops the gradient when it was incomplete, and when its norm is not finite; other failures leave it. */
function clearsGradient({ type, status, error }: TrainingRecord): boolean {
  if (status !== 'Failed' || type !== 'optim-step') return false;
  return error?.code === 'gradient_incomplete' || error?.code === 'operation_failed';
}
