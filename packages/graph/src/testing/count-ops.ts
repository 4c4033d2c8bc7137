/** How often each operation occurs in a program. */
import type { OpName } from '../ops/registry.js';
import type { Program } from '../program.js';

export function countOps({ nodes }: Program): Partial<Record<OpName, number>> {
  const counts: Partial<Record<OpName, number>> = {};
  for (const { op } of nodes) counts[op] = (counts[op] ?? 0) + 1;
  return counts;
}
