/** What an episode teaches: one datum for each of its sequences, with loss on the sampled tokens only. */
import { complaint, type DatumFor } from '@loopwright/protocol';
import { checkFinite, checkNumbers } from '../datums/checks.js';
import type { RlLossName } from '../datums/rl-datum.js';
import type { EpisodeProblem } from './environment.js';
import type { EpisodeRollout } from './run-episode.js';

export interface EpisodeDatumsOptions {
  readonly rollout: Pick<EpisodeRollout<EpisodeProblem>, 'sequences'> & { readonly turns: readonly unknown[] };
  /** Of every sampled token, or one number for each turn of the model. */
  readonly advantage: number | readonly number[];
}

/**
 * Datums of an episode. With S = contexts and answers of a sequence in their order, the model input is S without its last token and the
 * targets are S without its first; `weights` are 1 where the target was sampled and 0 on prompts, tool output and all else that the
 * template wrote; `logprobs` and `advantages` are those of the sampled tokens, 0 elsewhere. A turn without tokens gives none.
 *
 * @throws `invalid_argument` for advantages of another number, or not finite
 */
export function episodeDatums({ rollout, advantage }: EpisodeDatumsOptions): DatumFor<RlLossName>[] {
  const { sequences, turns } = rollout;
  const ofTurn =
    typeof advantage === 'number'
      ? turns.map(() => checkFinite(advantage, 'advantage'))
      : checkNumbers(advantage, { field: 'advantage', length: turns.length, of: 'turns' });
  return sequences.flatMap((segments): DatumFor<RlLossName>[] => {
    const tokens: number[] = [];
    const weights: number[] = [];
    const logprobs: number[] = [];
    const advantages: number[] = [];
    for (const { context, answer, turn } of segments) {
      if (answer.logprobs.length !== answer.tokens.length) {
        throw complaint({
          field: `turns[${turn}].logprobs`,
          expected: `${answer.tokens.length} numbers`,
          got: String(answer.logprobs.length),
        });
      }
      for (const token of context) {
        tokens.push(token);
        for (const list of [weights, logprobs, advantages]) list.push(0);
      }
      for (const [i, token] of answer.tokens.entries()) {
        tokens.push(token);
        weights.push(1);
        logprobs.push(answer.logprobs[i]!);
        advantages.push(ofTurn[turn]!);
      }
    }
    const end = weights.lastIndexOf(1) + 1; // what follows the last sampled token is predicted by nobody
    if (!weights.slice(1).includes(1)) return [];
    const [shifted, last] = [(list: readonly number[]) => list.slice(1, end), end - 1];
    return [
      {
        modelInput: tokens.slice(0, last),
        lossFnInputs: {
          targetTokens: shifted(tokens),
          weights: shifted(weights),
          logprobs: shifted(logprobs),
          advantages: shifted(advantages),
        },
      },
    ];
  });
}
