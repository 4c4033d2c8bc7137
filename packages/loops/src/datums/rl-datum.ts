/** Datums for the policy-gradient losses. */
import type { DatumFor } from '@loopwright/protocol';
import { checkFinite, checkNumbers, checkTokens, type Tokens } from './checks.js';

/** Losses that take sampled tokens with advantages. */
export type RlLossName = 'importance_sampling' | 'ppo' | 'cispo' | 'dro';

/** A sampled continuation, as `sample` returns it. R tokens. */
export interface SampledSequence {
  readonly tokens: Tokens;
  /** R: log-probability of each token under the policy that sampled it. */
  readonly logprobs: ArrayLike<number>;
}

export interface RlDatumOptions {
  /** P ≥ 1 tokens. */
  readonly prompt: Tokens;
  /** R ≥ 1 tokens. */
  readonly sequence: SampledSequence;
  /** One for the whole sequence, or R of them. */
  readonly advantage: number | ArrayLike<number>;
}

/**
 * A datum of one prompt and one sampled answer. With S = prompt + answer, the model input is S without its last token and
 * the targets are S without its first; weights, logprobs and advantages are 0 on the P − 1 positions that predict prompt
 * tokens, and 1, the sampled logprobs and the advantage on the R that predict the answer. Length P + R − 1.
 *
 * @throws `invalid_argument` for an empty prompt or answer, lengths that differ, and numbers that are not finite
 * @example rlDatum({ prompt: [5, 6], sequence: { tokens: [7], logprobs: [-0.2] }, advantage: 0.5 })
 */
export function rlDatum({ prompt, sequence, advantage }: RlDatumOptions): DatumFor<RlLossName> {
  const context = checkTokens(prompt, 'prompt', 'begin with at least one token, such as the beginning of sequence');
  const answer = checkTokens(sequence.tokens, 'sequence.tokens', 'leave samples without tokens out');
  const of = 'sequence.tokens';
  const logprobs = checkNumbers(sequence.logprobs, { field: 'sequence.logprobs', length: answer.length, of });
  const advantages =
    typeof advantage === 'object' && advantage !== null
      ? checkNumbers(advantage, { field: 'advantage', length: answer.length, of })
      : new Array<number>(answer.length).fill(checkFinite(advantage, 'advantage'));
  const whole = [...context, ...answer];
  const zeros = new Array<number>(context.length - 1).fill(0);
  return {
    modelInput: whole.slice(0, -1),
    lossFnInputs: {
      targetTokens: whole.slice(1),
      weights: [...zeros, ...answer.map(() => 1)],
      logprobs: [...zeros, ...logprobs],
      advantages: [...zeros, ...advantages],
    },
  };
}
