/**
 * Every loss as one array program, so that a session needs one compiled graph whatever losses it uses.
 *
 * N tokens of the micro-batch (padding included), K targets a token. All terms are computed, of which the selectors keep one;
 * they are cheap ([N,1]) beside the model, and finite, since the log-ratio is capped at 80 (r ≤ 5.5e34 in float32).
 * Formulas: `losses` in @loopwright/protocol. Sums over tokens and datums; nothing is divided.
 */
import { add, type Dim, exp, type Graph, max, min, mul, neg, stopGradient, sub, type Value } from '@loopwright/graph';
import type { LossName, LossSpec } from '@loopwright/protocol';

const maxLogRatio = 80;

/** Order of the selectors; a loss that is added here needs a term below. */
export const selectorOrder = [
  'cross_entropy',
  'importance_sampling',
  'ppo',
  'cispo',
  'dro',
] as const satisfies readonly LossName[];

export interface LossInputs {
  /** [N, K] */
  readonly weights: Value;
  /** [N, 1] */
  readonly advantages: Value;
  readonly oldLogprobs: Value;
  /** Scalars by name: one selector a loss, and the thresholds. */
  readonly scalars: Readonly<Record<(typeof selectorOrder)[number] | 'low' | 'high' | 'beta', Value>>;
}

/** `tokens` names N. */
export function lossInputs(graph: Graph, tokens: Dim): LossInputs {
  const scalar = (name: string) => graph.input(`loss.${name}`, 'float32', []);
  return {
    weights: graph.input('weights', 'float32', [tokens, 'K']),
    advantages: graph.input('advantages', 'float32', [tokens, 1]),
    oldLogprobs: graph.input('old_logprobs', 'float32', [tokens, 1]),
    scalars: {
      cross_entropy: scalar('cross_entropy'),
      importance_sampling: scalar('importance_sampling'),
      ppo: scalar('ppo'),
      cispo: scalar('cispo'),
      dro: scalar('dro'),
      low: scalar('low'),
      high: scalar('high'),
      beta: scalar('beta'),
    },
  };
}

/** Token losses [N, K] of log-probabilities [N, K]. */
export function tokenLosses(
  logprobs: Value,
  { weights: w, advantages: A, oldLogprobs: q, scalars }: LossInputs,
): Value {
  const { graph } = logprobs;
  const difference = sub(logprobs, q);
  const ratio = exp(min(difference, graph.scalar(maxLogRatio)));
  const clipped = min(max(ratio, scalars.low), scalars.high);
  const surrogate = mul(ratio, A);
  const terms: Record<(typeof selectorOrder)[number], Value> = {
    cross_entropy: logprobs,
    importance_sampling: surrogate,
    ppo: min(surrogate, mul(clipped, A)),
    cispo: mul(mul(stopGradient(clipped), A), logprobs),
    dro: sub(mul(logprobs, A), mul(mul(scalars.beta, graph.scalar(0.5)), mul(difference, difference))),
  };
  const chosen = selectorOrder.map((name) => mul(terms[name], scalars[name])).reduce(add);
  return neg(mul(w, chosen));
}

/** Values of the scalar inputs for one loss. */
export function lossScalars(loss: LossSpec): Readonly<Record<string, number>> {
  const clip = 'clipLowThreshold' in loss ? loss : { clipLowThreshold: 0, clipHighThreshold: 1 };
  return {
    ...Object.fromEntries(selectorOrder.map((name) => [`loss.${name}`, name === loss.name ? 1 : 0])),
    'loss.low': clip.clipLowThreshold,
    'loss.high': clip.clipHighThreshold,
    'loss.beta': 'beta' in loss ? loss.beta : 0,
  };
}
