/** How much memory an engine takes at most unless told otherwise. */
import { totalmem } from 'node:os';

/** Of the machine's memory; the rest is for the server beside the engine, and for the system. */
const share = 0.9;

/** What processes here may use: containers often have less than their machine. */
export function machineMemoryBytes(): number {
  const limit = process.constrainedMemory();
  return limit > 0 && limit < totalmem() ? limit : totalmem();
}

/** Nine tenths of the machine's memory. */
export function defaultMaxMemoryBytes(machineBytes: number = machineMemoryBytes()): number {
  return Math.floor(share * machineBytes);
}
