/** Putting a whole session into a file, and making a session what such a file says. */
import type { SessionSnapshot } from '../engine.js';
import type { WriteOptions } from '../formats/atomic-file.js';
import { readSessionSnapshot, type SnapshotOrigin, writeSessionSnapshot } from '../formats/session-snapshot.js';
import { checkSpec } from './check-spec.js';
import { stateFromTensors, stateTensors } from './train/session-state.js';
import type { TrainingSession } from './train/training-session.js';

const originOf = ({ created, plan }: TrainingSession): SnapshotOrigin => ({ spec: created, plan });

/** The session as it is now: passes may go on meanwhile. @throws `disk_full`, `cancelled` */
export function snapshotSession(
  session: TrainingSession,
  { directory, metadata, ...options }: WriteOptions & { readonly directory: string; readonly metadata: string },
): Promise<SessionSnapshot> {
  const { parameters } = session;
  return session.reading((state) => {
    const { training, step, pendingPasses, hasTrained } = state;
    const facts = { training, step, pendingPasses, hasTrained, metadata };
    const tensors = stateTensors(state, parameters);
    return writeSessionSnapshot(directory, { origin: originOf(session), facts, tensors }, options);
  });
}

/**
 * Reads and checks everything before the session is changed.
 *
 * @throws `unknown_version`, `model_invalid`, `checkpoint_mismatch`, `cancelled`
 */
export async function restoreSession(
  session: TrainingSession,
  { directory, signal }: { readonly directory: string; readonly signal?: AbortSignal },
): Promise<SessionSnapshot> {
  const options = signal === undefined ? {} : { signal };
  const { facts, tensors, sizeBytes } = await readSessionSnapshot(directory, { origin: originOf(session), ...options });
  const { metadata, ...position } = facts;
  checkSpec({ ...session.created, training: position.training });
  const state = stateFromTensors(position, tensors);
  signal?.throwIfAborted();
  session.become(state);
  return { step: state.step, pendingPasses: state.pendingPasses, metadata, sizeBytes };
}
