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

/**
 * Length to which a sequence is padded, whatever it goes with: only sequences of one padded length share a batch, since sums over
 * another length add up in another order, and a neighbour would change the last bits.
 */
export const padTo = (length: number) => Math.ceil(length / sequenceMultiple) * sequenceMultiple;

/** ids and positions [B,S] of sequences, padded with id 0. */
export function sequenceFeeds(snapshot: Snapshot, sequences: readonly Int32Array[], S: number): Feeds {
  const { tensors } = snapshot.model;
  const B = sequences.length;
  const ids = new BigInt64Array(B * S);
  const positions = new BigInt64Array(B * S);
  sequences.forEach((sequence, b) => {
    for (let s = 0; s < S; s++) positions[b * S + s] = BigInt(s);
    for (let s = 0; s < sequence.length; s++) ids[b * S + s] = BigInt(sequence[s]!);
  });
  return {
    ids: tensors.int(ids, [B, S]),
    positions: tensors.int(positions, [B, S]),
    mask: tensors.float(causalMask(S), [S, S]),
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

/** Scores prompts together, which must be padded to the same length; undefined for one that gave NaN or infinity. */
export async function scoreBatch(
  snapshot: Snapshot,
  prompts: readonly Int32Array[],
  topK: number,
): Promise<readonly (Scores | undefined)[]> {
  const S = padTo(Math.max(...prompts.map((prompt) => prompt.length)));
  const targets = new BigInt64Array(prompts.length * S);
  prompts.forEach((prompt, b) => {
    for (let i = 1; i < prompt.length; i++) targets[b * S + i - 1] = BigInt(prompt[i]!);
  });
  const feeds: Feeds = {
    ...sequenceFeeds(snapshot, prompts, S),
    targets: snapshot.model.tensors.int(targets, [targets.length, 1]),
  };
  const outputs = await runSequence(snapshot, { type: 'score', topK }, feeds, [
    'logprobs',
    ...(topK > 0 ? ['top_logprobs', 'top_ids'] : []),
  ]);
  const all = floats(outputs, 'logprobs');
  return prompts.map((prompt, b) => {
    const logprobs = new Float32Array(prompt.length);
    logprobs[0] = Number.NaN;
    logprobs.set(all.subarray(b * S, b * S + prompt.length - 1), 1);
    if (logprobs.subarray(1).some((logprob) => !Number.isFinite(logprob))) return undefined;
    if (topK === 0) return { logprobs, top: [] };
    const [values, ids] = [floats(outputs, 'top_logprobs'), integers(outputs, 'top_ids')];
    const top = Array.from({ length: prompt.length }, (_, i) =>
      i === 0
        ? []
        : Array.from({ length: topK }, (_, k) => {
            const at = (b * S + i - 1) * topK + k;
            return { tokenId: Number(ids[at]), logprob: values[at]! };
          }),
    );
    return { logprobs, top };
  });
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
