/** Checks of what a session is made of. */
import { complaint, type SessionSpec, samplerPaths, targetModules } from '@loopwright/protocol';

/** @throws `invalid_argument` naming the field */
export function checkSpec({ training, seed }: SessionSpec): void {
  if (!Number.isSafeInteger(seed)) throw complaint({ field: 'seed', expected: 'a whole number', got: String(seed) });
  if (training.type === 'full') return;
  const { rank, alpha, targetModules: modules, samplerPath = 'apart' } = training;
  if (!samplerPaths.includes(samplerPath))
    throw complaint({ field: 'training.samplerPath', expected: samplerPaths.join(' or '), got: String(samplerPath) });
  if (!Number.isInteger(rank) || rank < 1 || rank > 256)
    throw complaint({ field: 'training.rank', expected: 'a whole number from 1 to 256', got: String(rank) });
  if (!(alpha > 0 && Number.isFinite(alpha)))
    throw complaint({ field: 'training.alpha', expected: 'a number above 0', got: String(alpha) });
  if (
    modules.length === 0 ||
    new Set(modules).size !== modules.length ||
    modules.some((name) => !targetModules.includes(name))
  )
    throw complaint({
      field: 'training.targetModules',
      expected: `one at least of ${targetModules.join(', ')}, each once`,
      got: modules.length === 0 ? 'none' : modules.join(', ').slice(0, 200),
    });
}
