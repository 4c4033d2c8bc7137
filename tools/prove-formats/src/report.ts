/** The table of proofs, as Markdown that docs/results can take as it is. */

import { limits } from './limits.js';
import type { ModelProofs, Proof } from './prove-model.js';

/** Training has to move a log-prob by this at least: as much as the widest limit. */
const leastMove = limits.q8_0.largest;

export function reportLines(models: readonly { readonly name: string; readonly result: ModelProofs }[]): string[] {
  const proofs = models.flatMap(({ result }) => result.proofs);
  return [
    '| model | what | read by | ours | Δ largest | Δ mean | limit (largest, mean) | greedy equal | |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
    ...proofs.map(row),
    '',
    ...models.map(({ name, result }) => note(name, result)),
    ...proofs.flatMap(({ model, what, comparison }) => comparison.faults.map((fault) => `${model}, ${what}: ${fault}`)),
  ];
}

export function allHold(models: readonly { readonly result: ModelProofs }[]): boolean {
  return models.every(
    ({ result }) =>
      result.largestMove >= leastMove && result.proofs.every(({ comparison }) => comparison.faults.length === 0),
  );
}

function row({ model, what, peer, against, limit, comparison }: Proof): string {
  const { largest, mean, equalPrompts, prompts, widestParting, faults } = comparison;
  const parting = equalPrompts === prompts ? '' : ` (else at a gap of ${widestParting.toFixed(3)} at most)`;
  const cells = [
    ...[model, what, peer, against, size(largest), size(mean), `${size(limit.largest)}, ${size(limit.mean)}`],
    ...[`${equalPrompts} of ${prompts}${parting}`, faults.length === 0 ? 'pass' : 'FAIL'],
  ];
  return `| ${cells.join(' | ')} |`;
}

function note(name: string, { largestMove, ggufRefusal, proofs }: ModelProofs): string {
  const verdict = largestMove >= leastMove ? '' : `, less than ${leastMove}: FAIL`;
  const count = proofs[0]?.comparison.count ?? 0;
  const gguf = ggufRefusal === undefined ? '' : ` No GGUF: ${ggufRefusal}`;
  return `${name}: ${count} log-probs a row; training moved one by ${largestMove.toFixed(1)}${verdict}.${gguf}`;
}

function size(value: number): string {
  return value.toExponential(1);
}
