/** A datum beside what it was made of: which of its targets were sampled, and whether it says so. */

import { weightsOf } from './datum-weights.js';
import type { DatumFacts, DatumSource, SourcePart } from './facts.js';

export interface Layout {
  /** Token sequence that it was made of. */
  readonly tokens: readonly number[];
  /** Of each token. */
  readonly kinds: readonly SourcePart['kind'][];
}

export function layoutOf({ parts }: DatumSource): Layout {
  const [tokens, kinds]: [number[], SourcePart['kind'][]] = [[], []];
  for (const part of parts) {
    for (let i = 0; i < part.tokens.length; i++) {
      tokens.push(part.tokens[i]!);
      kinds.push(part.kind);
    }
  }
  return { tokens, kinds };
}

/** Targets of a weight other than 0 that are of a kind. Target t is token t + 1. */
export function trainedOf(datum: DatumFacts, { kinds }: Layout, kind: SourcePart['kind']): number {
  const weights = weightsOf(datum);
  let count = 0;
  for (let t = 0; t < datum.modelInput.length; t++) if (weights[t] !== 0 && kinds[t + 1] === kind) count += 1;
  return count;
}

/** Shifts that are looked for: the target is the token itself, or the one after the next. */
const wrongShifts = [0, 2] as const;
/** Fewer positions match anything by chance. */
const minPositions = 4;

/**
 * By how many tokens the targets are shifted, where they are by a wrong number: 0 or 2 instead of 1. Undefined where they are right, or no
 * shift explains them (targets of another kind).
 */
export function targetShift({ modelInput, lossFnInputs: { targetTokens } }: DatumFacts): number | undefined {
  if (typeof targetTokens[0] !== 'number') return undefined;
  if (shareOf(1) >= 0.5) return undefined;
  return wrongShifts.find((shift) => shareOf(shift) >= 0.9);

  function shareOf(shift: number): number {
    const compared = modelInput.length - shift;
    if (compared < minPositions) return Number.NaN;
    let equal = 0;
    for (let t = 0; t < compared; t++) if (targetTokens[t] === modelInput[t + shift]) equal += 1;
    return equal / compared;
  }
}

/** By how many positions the weights are beside what was sampled: −1 or 1 where that explains them and they are wrong; 0 else. */
export function maskShift(datum: DatumFacts, { kinds }: Layout): -1 | 0 | 1 {
  const N = datum.modelInput.length;
  const weights = weightsOf(datum);
  const fits = (shift: number): boolean => {
    for (let t = 0; t < N; t++) {
      const at = t + 1 + shift;
      // What would lie beyond the datum says nothing.
      if (at < 1 || at > N) continue;
      if ((weights[t] !== 0) !== (kinds[at] === 'sampled')) return false;
    }
    return true;
  };
  const sampled = kinds.filter((kind) => kind === 'sampled').length;
  if (sampled < 2 || fits(0)) return 0;
  if (fits(-1)) return -1;
  return fits(1) ? 1 : 0;
}

/** Whether the tokens that it trains as sampled are not the sampled ones. */
export function hasOtherTokens({ modelInput, lossFnInputs: { targetTokens } }: DatumFacts, layout: Layout): boolean {
  const { tokens, kinds } = layout;
  const end = kinds.lastIndexOf('sampled') + 1;
  const N = modelInput.length;
  if (typeof targetTokens[0] !== 'number' || end === 0) return false;
  if (N + 1 < end || N + 1 > tokens.length) return true;
  for (let i = 1; i < end; i++) if (kinds[i] === 'sampled' && targetTokens[i - 1] !== tokens[i]) return true;
  return false;
}
