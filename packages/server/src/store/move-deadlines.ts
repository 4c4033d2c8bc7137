/** What was counted from the time of day goes on as if nobody had touched it. */
import { liveStatuses } from '../sessions/session-record.js';
import type { Database } from './open-database.js';

/** Moves the idle time of live sessions and the expiry of versions along with a time of day that was moved by `ms`. */
export async function moveDeadlines(database: Database, ms: number): Promise<void> {
  await database.transaction().execute(async (trx) => {
    await trx
      .updateTable('sessions')
      .set(({ eb }) => ({ active_at_ms: eb('active_at_ms', '+', ms) }))
      .where('status', 'in', liveStatuses)
      .execute();
    await trx
      .updateTable('versions')
      .set(({ eb }) => ({ expires_at_ms: eb('expires_at_ms', '+', ms) }))
      .where('expires_at_ms', 'is not', null)
      .where('deleted_at_ms', 'is', null)
      .execute();
  });
}
