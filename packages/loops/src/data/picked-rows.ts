/** Rows of sources that can only be read from their beginning: all that are wanted are picked out in one reading. */
import { cancelled, throwIfCancelled } from './cancelled.js';
import type { JsonRow } from './row.js';
import type { RowSource } from './source.js';

/** What a row takes beside its texts, about: objects and keys. */
const rowOverheadBytes = 256;

/** What a row takes in memory once it was picked. */
export function heldBytes({ sizeBytes }: { readonly sizeBytes: number }): number {
  return sizeBytes + rowOverheadBytes;
}

/**
 * Reads as far as the last row that is wanted.
 *
 * @param offsets of the wanted rows
 * @returns rows by their offset; those that aren't there any more are left out
 */
export async function pickRows(
  source: RowSource,
  offsets: ReadonlySet<number>,
  signal: AbortSignal | undefined,
): Promise<Map<number, JsonRow>> {
  const found = new Map<number, JsonRow>();
  throwIfCancelled(signal);
  try {
    for await (const records of source.read({ signal, only: (offset) => offsets.has(offset) })) {
      throwIfCancelled(signal);
      for (const record of records) {
        if (record.type === 'row' && offsets.has(record.offset)) found.set(record.offset, record.row);
      }
      if (found.size === offsets.size) break;
    }
  } catch (error) {
    throw signal?.aborted === true ? cancelled(signal) : error;
  }
  return found;
}
