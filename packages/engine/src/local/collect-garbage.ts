/** Collecting what was let go of, at once: an engine that has nothing to do allocates nothing, so that nobody else would ask for it. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Some tens of milliseconds; the memory of large arrays is given back by another thread a moment later. */
export function collectGarbage(): void {
  // The function is made by the flag, for contexts that are made from then on.
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('typeof gc === "function" ? gc : undefined');
  setFlagsFromString('--no-expose-gc');
  if (typeof collect === 'function') collect();
}
