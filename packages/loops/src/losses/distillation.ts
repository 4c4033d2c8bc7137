/** On-policy distillation: the student samples, a teacher scores every token. */
import type { DatumFor } from '@loopwright/protocol';
import type { Tokens } from '../datums/checks.js';
import { type RlLossName, rlDatum, type SampledSequence } from '../datums/rl-datum.js';
import type { Scorer } from '../training/clients.js';
import { numberWithin } from '../training/options.js';
import { flat } from './loss-datum.js';
import { withReference } from './reference.js';

export interface StudentSample {
  readonly prompt: Tokens;
  /** Sampled by the student, at temperature 1. */
  readonly sequence: SampledSequence;
}

export interface DistillationOptions {
  /** A sampling client of the teacher, whose tokenizer must be the student's. */
  readonly teacher: Scorer;
  /** Times every advantage; default 1. */
  readonly coefficient?: number;
  readonly signal?: AbortSignal;
}

/**
 * Datums for `importance_sampling` whose per-token advantages are log p_teacher − log q_student of the sampled token: in the
 * mean, the step goes down KL(student ‖ teacher) of each next token given what the student wrote. Later tokens are no part of
 * an earlier one's advantage (a discount of 0).
 *
 * A sum over tokens; nothing is divided. `refLogProb` holds the teacher's log-probabilities, so that the engine reports the
 * divergence.
 *
 * @see arXiv:2306.08543 (MiniLLM), section 2.2, for the gradient of the reverse divergence; arXiv:2306.13649 (GKD) for sampling from
 *   the student
 * @throws `invalid_argument`, `cancelled`, and what the teacher's client throws
 * @example
 * const data = await distillationData(samples, { teacher });
 * await Promise.all([training.forwardBackward(data, 'importance_sampling'), training.optimStep()]);
 */
export async function distillationData(
  samples: readonly StudentSample[],
  { teacher, coefficient = 1, signal }: DistillationOptions,
): Promise<DatumFor<RlLossName>[]> {
  numberWithin('coefficient', coefficient, { min: 0, max: 1e6 });
  const unscored = samples.map(({ prompt, sequence }) => rlDatum({ prompt, sequence, advantage: 0 }));
  const scored = await withReference(unscored, teacher, signal === undefined ? {} : { signal });
  return scored.map((datum) => {
    const { weights, logprobs, refLogProb } = datum.lossFnInputs;
    const student = flat(logprobs);
    const advantages = flat(weights).map((weight, t) =>
      weight === 0 ? 0 : coefficient * ((refLogProb[t] ?? Number.NaN) - (student[t] ?? Number.NaN)),
    );
    return { ...datum, lossFnInputs: { ...datum.lossFnInputs, advantages } };
  });
}
