/** Log-probabilities of whole prompts: the trainer's definition, on the weights of a snapshot. */
import { LoopwrightError, type TokenLogprob } from '@loopwright/protocol';
import { type Feeds, floats, integers } from '../ort/runtime.js';
import { causalMask } from '../train/mask.js';
import type { SequenceKind } from './sequence-graph.js';
import type { Snapshot } from './snapshot.js';

export interface Scores {
  /** Length of the prompt; the first is NaN. */
  readonly logprobs: Float32Array;
  /** Likeliest first; the first position has none. */
  readonly top: readonly (readonly TokenLogprob[])[];
}

/** Sequences are padded to a multiple of this. */
const sequenceMultiple = 16;

export const padTo = (length: number) => Math.ceil(length / sequenceMultiple) * sequenceMultiple;

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
    mask: tensors.float(causalMask(S), [1, S, S]),
  };
}

export async function runSequence(snapshot: Snapshot, kind: SequenceKind, feeds: Feeds, fetches: readonly string[]) {
  const { compiled, weightNames } = await snapshot.model.sequence(kind);
  const adapter = Object.entries(snapshot.sequence).filter(
    ([name]) => kind.type === 'score' || !name.startsWith('lm_head.'),
  );
  const all: Feeds = { ...Object.fromEntries(adapter), ...feeds };
  for (const name of weightNames) all[name] = snapshot.model.weightTensor(name);
  return compiled.run(all, fetches);
}

/** @throws `operation_failed` where the weights give NaN or infinity */
export async function score(snapshot: Snapshot, prompt: Int32Array, topK: number): Promise<Scores> {
  const targets = new BigInt64Array(padTo(prompt.length));
  for (let i = 1; i < prompt.length; i++) targets[i - 1] = BigInt(prompt[i]!);
  const feeds: Feeds = {
    ...sequenceFeeds(snapshot, prompt),
    targets: snapshot.model.tensors.int(targets, [targets.length, 1]),
  };
  const outputs = await runSequence(
    snapshot,
    {
      type: 'score',
      topK,
      adapted: snapshot.fused.isAdapted,
      adaptedHead: snapshot.fused.head !== undefined,
    },
    feeds,
    ['logprobs', ...(topK > 0 ? ['top_logprobs', 'top_ids'] : [])],
  );
  const logprobs = new Float32Array(prompt.length);
  logprobs[0] = Number.NaN;
  logprobs.set(floats(outputs, 'logprobs').subarray(0, prompt.length - 1), 1);
  if (logprobs.subarray(1).some((logprob) => !Number.isFinite(logprob))) throw divergedWeights();
  if (topK === 0) return { logprobs, top: [] };
  const [values, ids] = [floats(outputs, 'top_logprobs'), integers(outputs, 'top_ids')];
  const top = Array.from({ length: prompt.length }, (_, i) =>
    i === 0
      ? []
      : Array.from({ length: topK }, (_, k) => {
          const at = (i - 1) * topK + k;
          return { tokenId: Number(ids[at]), logprob: values[at]! };
        }),
  );
  return { logprobs, top };
}

/** For weights that no longer give a distribution. */
export function divergedWeights(): LoopwrightError {
  const remedy = 'sample from an earlier version, or train at a lower learning rate';
  const [expected, got] = ['finite log-probabilities', 'NaN or infinity'];
  return new LoopwrightError({
    code: 'operation_failed',
    message: `weights: expected ${expected}, got ${got}: they have diverged; ${remedy}`,
    details: { field: 'weights', expected, got, remedy },
  });
}
