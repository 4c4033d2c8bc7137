/** Log-probabilities of whole prompts: the trainer's definition, on the weights of a snapshot. */
import { type IdTensor, LoopwrightError, type TokenLogprob } from '@loopwright/protocol';
import { headWeightName } from '../models/weight-names.js';
import { type Feeds, floats, integers } from '../ort/runtime.js';
import { padTo, runSequence, sequenceFeeds } from './sequence.js';
import type { Snapshot } from './snapshot.js';

export interface Scores {
  /** Length of the prompt; the first is NaN. */
  readonly logprobs: Float32Array;
  /** Likeliest first; the first position has none. */
  readonly top: readonly (readonly TokenLogprob[])[];
  /** Of the tokens that were asked for by name, row by row; NaN where an id was negative. */
  readonly targets: Float32Array;
}

/** Positions whose logits are held at a time; of 49,152 tokens they take 50 MB. */
export const scoredPositions = 256;

export interface ScoreOptions {
  /** Likeliest tokens wanted at each position; 0 for none. */
  readonly topK: number;
  /** Positions whose logits are held at a time, a multiple of 16; {@link scoredPositions}. */
  readonly chunk?: number;
  /** Further tokens whose log-probabilities are wanted: a row for each position that a token of the prompt follows. */
  readonly targets?: IdTensor | undefined;
}

/**
 * Scores a prompt in slices: the model over all of it, then the head over chunks of its positions. Yields between them.
 *
 * Chunks are a function of the prompt's length alone, so that neighbours change no bit.
 *
 * @throws `operation_failed` where the weights give NaN or infinity
 */
export async function* scoreInSlices(
  snapshot: Snapshot,
  prompt: Int32Array,
  { topK, chunk = scoredPositions, targets }: ScoreOptions,
): AsyncGenerator<undefined, Scores, undefined> {
  const logprobs = new Float32Array(prompt.length).fill(Number.NaN);
  const top: (readonly TokenLogprob[])[] = topK > 0 ? [[]] : [];
  const followed = prompt.length - 1; // positions that a token of the prompt follows
  const wanted = targets === undefined ? 0 : (targets.shape[1] ?? 1);
  const targetLogprobs = new Float32Array(targets?.data.length ?? 0);
  if (followed > 0) {
    const kind = { type: 'hidden', adapted: snapshot.fused.isAdapted } as const;
    const hidden = floats(await runSequence(snapshot, kind, sequenceFeeds(snapshot, prompt), ['hidden']), 'hidden');
    const width = snapshot.model.config.hiddenSize;
    for (let start = 0; start < followed; start += chunk) {
      yield;
      const next = prompt.subarray(start + 1, Math.min(start + chunk, followed) + 1);
      const rows = hidden.subarray(start * width, (start + padTo(next.length)) * width);
      const further = targets?.data.subarray(start * wanted, (start + next.length) * wanted);
      const part = await scoreRows(snapshot, { hidden: rows, next, topK, further });
      logprobs.set(part.logprobs, start + 1);
      top.push(...part.top);
      targetLogprobs.set(part.targets, start * wanted);
    }
  }
  return { logprobs, top, targets: targetLogprobs };
}

/** Scores the tokens that come `next` after the first of these hidden states [N, D]; N is a multiple of 16. */
async function scoreRows(
  { model, fused }: Snapshot,
  {
    hidden,
    next,
    topK,
    further = new Int32Array(0),
  }: { hidden: Float32Array; next: Int32Array; topK: number; further: Int32Array | undefined },
): Promise<Scores> {
  const { tensors, config } = model;
  const N = padTo(next.length);
  const K = further.length / next.length;
  const T = 1 + K;
  const targets = new BigInt64Array(N * T);
  for (let i = 0; i < next.length; i++) {
    targets[i * T] = BigInt(next[i]!);
    for (let k = 0; k < K; k++) targets[i * T + 1 + k] = BigInt(Math.max(0, further[i * K + k]!));
  }
  const head = headWeightName(config);
  const feeds: Feeds = {
    hidden: tensors.float(hidden, [N, config.hiddenSize]),
    targets: tensors.int(targets, [N, T]),
    [head]: model.weightTensor(head),
    ...(fused.head === undefined ? {} : { 'head.A': fused.head.A, 'head.B': fused.head.B }),
  };
  const program = await model.scoreHead({ topK, adapted: fused.head !== undefined });
  const outputs = await program.run(feeds, ['logprobs', ...(topK > 0 ? ['top_logprobs', 'top_ids'] : [])]);
  const all = floats(outputs, 'logprobs');
  const logprobs = Float32Array.from(next, (_, i) => all[i * T]!);
  if (!logprobs.every(Number.isFinite)) throw divergedWeights();
  const targetLogprobs = Float32Array.from(further, (id, at) =>
    id < 0 ? Number.NaN : all[Math.floor(at / K) * T + 1 + (at % K)]!,
  );
  if (topK === 0) return { logprobs, top: [], targets: targetLogprobs };
  const [values, ids] = [floats(outputs, 'top_logprobs'), integers(outputs, 'top_ids')];
  const top = Array.from(next, (_, i) =>
    Array.from({ length: topK }, (_, k) => ({ tokenId: Number(ids[i * topK + k]), logprob: values[i * topK + k]! })),
  );
  return { logprobs, top, targets: targetLogprobs };
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
