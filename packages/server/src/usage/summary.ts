/** Sums over the ledger. Rows of sessions that were deleted stay in it. */
import type { UsageLine, UsageQuery } from '@loopwright/wires/loopwright';
import type { Database } from '../store/open-database.js';

/** Lines in the order of their first operation. */
export async function usageSummary(
  database: Database,
  workspaceId: string,
  { by, fromMs, toMs }: UsageQuery,
): Promise<UsageLine[]> {
  let query = database
    .selectFrom('ledger')
    .select(({ fn }) => [
      'base_model',
      fn.countAll<number>().as('operations'),
      fn.sum<number>('prefill_tokens').as('prefillTokens'),
      fn.sum<number>('sample_tokens').as('sampleTokens'),
      fn.sum<number>('training_tokens').as('trainingTokens'),
      fn.min<number>('at_ms').as('firstAtMs'),
      fn.max<number>('at_ms').as('lastAtMs'),
      // Of a group by session or type these are the same in each of its rows.
      fn.min<string>('session_id').as('sessionId'),
      fn.min<string>('session_name').as('sessionName'),
      fn.min<string>('operation_type').as('operationType'),
    ])
    .where('workspace_id', '=', workspaceId)
    .groupBy('base_model')
    .orderBy('firstAtMs')
    .orderBy('base_model');
  if (by === 'session') query = query.groupBy('session_id').orderBy('session_id');
  if (by === 'operation') query = query.groupBy('operation_type').orderBy('operation_type');
  if (fromMs !== undefined) query = query.where('at_ms', '>=', fromMs);
  if (toMs !== undefined) query = query.where('at_ms', '<', toMs);
  const rows = await query.execute();
  return rows.map(({ base_model: baseModel, sessionId: id, sessionName: name, operationType, ...sums }) => ({
    baseModel,
    ...(by === 'session' ? { session: { id, name } } : {}),
    ...(by === 'operation' ? { operationType } : {}),
    ...sums,
  }));
}
