/** Scoring datums with another model: the base, a saved version, a teacher. */
import { complaint } from '@loopwright/protocol';
import type { Scorer } from '../training/clients.js';
import { withScope } from '../training/scope.js';
import { flat, type WeightedDatum } from './loss-datum.js';

/** As it was, and with `refLogProb`. */
export type WithReference<D extends WeightedDatum> = D & {
  readonly lossFnInputs: D['lossFnInputs'] & { readonly refLogProb: number[] };
};

/**
 * Adds to each datum the log-probabilities of its targets under another model, at temperature 1. All datums are scored at
 * once; score a data set before training on it, and no step pays for it again.
 *
 * @param scorer a sampling client of the base model, of a saved version, or of a teacher with the same tokenizer
 * @throws `invalid_argument` when targets are not the model input shifted by one; `cancelled`, and what the client throws
 * @example const data = await withReference(pairs, await service.createSamplingClient({ baseModel }));
 */
export async function withReference<D extends WeightedDatum>(
  data: readonly D[],
  scorer: Scorer,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<WithReference<D>[]> {
  const sequences = data.map(wholeSequence);
  const scored = await withScope(signal, (scope) =>
    scope.all(sequences.map((tokens) => (own: AbortSignal) => scorer.computeLogprobs(tokens, { signal: own }))),
  );
  return data.map((datum, i) => {
    // The first token has no predecessor, so it has no number.
    const refLogProb = (scored[i] ?? []).slice(1).map((logprob) => logprob ?? Number.NaN);
    return { ...datum, lossFnInputs: { ...datum.lossFnInputs, refLogProb } };
  });
}

/** Model input and last target. */
function wholeSequence({ modelInput, lossFnInputs }: WeightedDatum, index: number): number[] {
  const tokens = Array.from(modelInput);
  const targets = flat(lossFnInputs.targetTokens);
  const isShifted =
    targets.length === tokens.length && targets.every((id, t) => t + 1 === tokens.length || id === tokens[t + 1]);
  const last = targets.at(-1);
  if (isShifted && last !== undefined) return [...tokens, last];
  throw complaint({
    field: `data[${index}].lossFnInputs.targetTokens`,
    expected: 'the model input without its first token, and one token more',
    got: `${targets.length} targets that are not`,
    remedy: 'score such datums yourself, by forward on a session of the other model',
  });
}
