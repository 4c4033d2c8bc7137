/** Where the programs of children lie, and how long they may take to come up. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Processes may be slow to come up on a machine that is busy. */
export const startMs = 120_000;

/** Compiled code lies beside this file; from source, where it will be compiled to. */
export function childFolder(): string {
  return path.dirname(fileURLToPath(import.meta.url)).replace(/([\\/])src([\\/]sandbox)$/, '$1dist$2');
}
