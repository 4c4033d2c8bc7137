/** The ledger: what each operation cost. A row is written in the transaction of its operation's result, so neither exists alone. */
import type { OperationResults, OperationType, TokenUsage } from '@loopwright/protocol';
import type { Transaction } from 'kysely';
import type { OperationRecord } from '../operations/operation-record.js';
import type { SessionRecord } from '../sessions/session-record.js';
import type { Database } from '../store/open-database.js';
import { preparedInsert } from '../store/prepared.js';
import type { Tables } from '../store/tables.js';

/** A result with the type of its operation. */
export type AnyResult = {
  [T in OperationType]: { readonly type: T; readonly result: OperationResults[T] };
}[OperationType];

/** Counts the tokens of a result: prompts once per request, sampled tokens each, and the model inputs of both kinds of pass. */
export function usageOf(done: AnyResult): TokenUsage {
  const none = { prefillTokens: 0, sampleTokens: 0, trainingTokens: 0 };
  switch (done.type) {
    case 'forward':
    case 'forward-backward':
      return { ...none, trainingTokens: done.result.trainingTokens };
    case 'sample': {
      const sampleTokens = done.result.sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
      return { ...none, prefillTokens: done.result.prefillTokens, sampleTokens };
    }
    case 'compute-logprobs':
      return { ...none, prefillTokens: done.result.prefillTokens };
    case 'optim-step':
    case 'save-weights':
    case 'save-state':
    case 'load-state':
    case 'load-weights':
      return none;
    default:
      return done satisfies never;
  }
}

export interface Charge {
  readonly session: Pick<SessionRecord, 'id' | 'name' | 'spec'>;
  readonly operation: OperationRecord;
  readonly usage: TokenUsage;
  readonly atMs: number;
}

const enter = preparedInsert('ledger');

/** Writes the row of an operation that ended; free operations have none. */
export async function charge(trx: Transaction<Tables>, { session, operation, usage, atMs }: Charge): Promise<void> {
  if (usage.prefillTokens + usage.sampleTokens + usage.trainingTokens === 0) return;
  await enter(trx, {
    workspace_id: operation.workspaceId,
    operation_id: operation.id,
    session_id: session.id,
    session_name: session.name,
    base_model: session.spec.baseModel,
    operation_type: operation.type,
    prefill_tokens: usage.prefillTokens,
    sample_tokens: usage.sampleTokens,
    training_tokens: usage.trainingTokens,
    at_ms: atMs,
  });
}

/** The counters of a session: the sum over its operations. */
export async function sessionUsage(database: Database, sessionId: string): Promise<TokenUsage> {
  const row = await database
    .selectFrom('ledger')
    .select(({ fn, lit }) => [
      fn.coalesce(fn.sum<number>('prefill_tokens'), lit(0)).as('prefillTokens'),
      fn.coalesce(fn.sum<number>('sample_tokens'), lit(0)).as('sampleTokens'),
      fn.coalesce(fn.sum<number>('training_tokens'), lit(0)).as('trainingTokens'),
    ])
    .where('session_id', '=', sessionId)
    .executeTakeFirstOrThrow();
  return row;
}
