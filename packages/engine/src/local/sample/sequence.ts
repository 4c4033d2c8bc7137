/** Runs of whole sequences through the model of a snapshot. */

import { paddedLength } from '../models/sequence-form.js';
import type { Feeds } from '../ort/runtime.js';
import type { SequenceKind } from './sequence-graph.js';
import type { Snapshot } from './snapshot.js';

/** Sequences are padded to a multiple of this. */
const sequenceMultiple = 16;

export const padTo = (length: number) => paddedLength(length, sequenceMultiple);

/**
 * ids and positions [1,S] of a sequence, padded with id 0.
 *
 * A sequence goes by itself, whatever waits beside it: how the runtime shares a product out among threads, and with it the order of
 * sums, depends on the number of rows, so that a neighbour in the batch would change the last bits.
 */
export function sequenceFeeds(snapshot: Snapshot, sequence: Int32Array): Feeds {
  const { tensors } = snapshot.model;
  const S = padTo(sequence.length);
  const ids = new BigInt64Array(S);
  for (let s = 0; s < sequence.length; s++) ids[s] = BigInt(sequence[s]!);
  return {
    ids: tensors.int(ids, [1, S]),
    positions: tensors.int(
      BigInt64Array.from({ length: S }, (_, s) => BigInt(s)),
      [1, S],
    ),
  };
}

export async function runSequence(snapshot: Snapshot, kind: SequenceKind, feeds: Feeds, fetches: readonly string[]) {
  const { compiled, weightNames } = await snapshot.model.sequence(kind);
  const all: Feeds = { ...snapshot.sequence, ...feeds };
  for (const name of weightNames) all[name] = snapshot.model.weightTensor(name);
  return compiled.run(all, fetches);
}
