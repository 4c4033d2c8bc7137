/** Noting blobs that lost a reference, within the transaction that took it away. */
import type { Transaction } from 'kysely';
import type { GarbageTable, Tables } from './tables.js';

/** SQLite takes at most 32,766 parameters in a statement. */
const rowsPerInsert = 10_000;

export async function discardBlobs(trx: Transaction<Tables>, rows: readonly GarbageTable[]): Promise<void> {
  for (let start = 0; start < rows.length; start += rowsPerInsert) {
    await trx
      .insertInto('garbage')
      .values(rows.slice(start, start + rowsPerInsert))
      .onConflict((on) => on.doNothing())
      .execute();
  }
}
