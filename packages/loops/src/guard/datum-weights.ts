/** The weights of a datum, however they are given. */
import type { DatumFacts } from './facts.js';

/** Weight of each target position; rows of several targets count as their sum. */
export function weightsOf({ modelInput, lossFnInputs: { weights } }: DatumFacts): ArrayLike<number> {
  if (weights === undefined) return new Array<number>(modelInput.length).fill(1);
  if (typeof weights[0] !== 'object') return weights as ArrayLike<number>; // true: flat, or rows all along
  return Array.from(weights, (row) =>
    typeof row === 'number' ? row : row.reduce((sum, each) => sum + Math.abs(each), 0),
  );
}
