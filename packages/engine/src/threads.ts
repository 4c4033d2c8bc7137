/** How many threads an engine has unless told otherwise. */
import { availableParallelism } from 'node:os';

/** The processors of the machine, 8 at most: beyond that the threads of a small model wait for each other. */
export function defaultThreads(): number {
  return Math.min(8, availableParallelism());
}
