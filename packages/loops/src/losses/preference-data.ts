/** Datums for losses of preference: pairs, and examples that are liked or not. */
import { complaint } from '@loopwright/protocol';
import type { Tokens } from '../datums/checks.js';
import { sftDatum } from '../datums/sft-datum.js';
import type { WeightedDatum } from './loss-datum.js';

/** Two completions of a prompt, of which the first is liked better. Token ids. */
export interface PreferencePair {
  readonly prompt: Tokens;
  readonly chosen: Tokens;
  readonly rejected: Tokens;
}

/**
 * Two datums a pair, chosen before rejected: the order that `dpo`, `ipo`, `simpo` and `orpo` read. Weights are 1 on the
 * completions and 0 on the prompts.
 *
 * @throws `invalid_argument` for an empty prompt or completion
 */
export function preferenceData(pairs: readonly PreferencePair[]): WeightedDatum[] {
  return pairs.flatMap(({ prompt, chosen, rejected }) => [
    sftDatum({ prompt, completion: chosen }),
    sftDatum({ prompt, completion: rejected }),
  ]);
}

/** A completion, and whether it is liked. Token ids. */
export interface JudgedCompletion {
  readonly prompt: Tokens;
  readonly completion: Tokens;
  readonly desirable: boolean;
}

/** What `kto` reads: completions to learn from, and mismatched ones (`forwardOnly`) that only tell how far the model has moved. */
export type KtoDatum<D extends WeightedDatum = WeightedDatum> = D &
  ({ readonly desirable: boolean } | { readonly forwardOnly: true });

/**
 * Two datums an example: itself, and its prompt with the completion of the next example that has another prompt.
 *
 * @param examples those of one step: the divergence is estimated over them
 * @throws `invalid_argument` when all prompts are the same
 */
export function ktoData(examples: readonly JudgedCompletion[]): KtoDatum[] {
  return examples.flatMap(({ prompt, completion, desirable }, i) => {
    const others = [...examples.slice(i + 1), ...examples.slice(0, i)];
    const mismatched = others.find((other) => !areEqual(other.prompt, prompt));
    if (mismatched === undefined) {
      throw complaint({
        field: 'examples',
        expected: 'two prompts or more, so that completions can be mismatched',
        got: `${examples.length} examples of one prompt`,
        remedy: 'put examples of several prompts into a step',
      });
    }
    return [
      { ...sftDatum({ prompt, completion }), desirable },
      { ...sftDatum({ prompt, completion: mismatched.completion }), forwardOnly: true as const },
    ];
  });
}

function areEqual(a: Tokens, b: Tokens): boolean {
  return a.length === b.length && Array.from(a).every((id, i) => id === b[i]);
}
