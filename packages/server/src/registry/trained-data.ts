/** What a version was trained on, read from the operation log when it is saved. */
import { createHash } from 'node:crypto';
import type { OperationLog } from '../operations/operation-log.js';
import type { TrainingRecord } from '../operations/operation-record.js';
import { dropsGradient } from '../scheduler/endings.js';
import type { Database } from '../store/open-database.js';
import type { NotedData } from './version.js';

export interface DataReader {
  readonly database: Database;
  readonly log: OperationLog;
}

const nothing: NotedData = { digest: null, passes: 0, datums: 0, tokens: 0, through: 0 };

/**
 * Sums the passes that went into the weights since the session began, or since its last load: those that completed and whose gradient a
 * completed step used. What the save before has noted is not read again, so that a save at each step costs no more the longer a session lasts.
 */
export async function trainedData(
  { database, log }: DataReader,
  session: { readonly id: string; readonly workspaceId: string },
  beforeSequenceNumber: number,
): Promise<NotedData> {
  let noted = await lastNoted(database, session, beforeSequenceNumber);
  let pending: TrainingRecord[] = [];
  for (const record of await log.trainingBetween(session.id, noted.through, beforeSequenceNumber)) {
    if (record.status === 'Failed' && record.error !== null && dropsGradient(record.type, record.error.code)) {
      pending = [];
      noted = { ...noted, through: record.sequenceNumber };
    }
    if (record.status !== 'Completed') continue;
    if (record.type === 'forward-backward') pending.push(record);
    if (record.type === 'load-state') {
      pending = [];
      noted = { ...nothing, through: record.sequenceNumber };
    }
    if (record.type === 'optim-step') {
      noted = { ...(await added({ database, log }, noted, pending)), through: record.sequenceNumber };
      pending = [];
    }
  }
  return noted;
}

/** Of the newest save of the session before this one; of none, and where an older release noted nothing, the beginning. */
async function lastNoted(
  database: Database,
  { id, workspaceId }: { readonly id: string; readonly workspaceId: string },
  beforeSequenceNumber: number,
): Promise<NotedData> {
  const row = await database
    .selectFrom('operations')
    .innerJoin('versions', 'versions.operation_id', 'operations.id')
    .select('versions.data')
    .where('operations.session_id', '=', id)
    .where('versions.workspace_id', '=', workspaceId)
    .where('versions.data', 'is not', null)
    .where('operations.sequence_number', '<', beforeSequenceNumber)
    .orderBy('operations.sequence_number', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.data == null ? nothing : JSON.parse(row.data);
}

async function added(
  { database, log }: DataReader,
  noted: NotedData,
  passes: readonly TrainingRecord[],
): Promise<NotedData> {
  if (passes.length === 0) return noted;
  const charged = await database
    .selectFrom('ledger')
    .select(({ fn }) => fn.sum<number | null>('training_tokens').as('tokens'))
    .where(
      'operation_id',
      'in',
      passes.map(({ id }) => id),
    )
    .executeTakeFirst();
  let { digest, datums } = noted;
  for (const pass of passes) {
    digest = createHash('sha256')
      .update(`${digest ?? ''}${pass.payloadBlob}`)
      .digest('hex');
    datums += pass.resolved.datums ?? (await countDatums(log, pass));
  }
  const tokens = noted.tokens + (charged?.tokens ?? 0);
  return { ...noted, digest, datums, tokens, passes: noted.passes + passes.length };
}

/** For operations of an older release, which did not note it. */
async function countDatums(log: OperationLog, record: TrainingRecord): Promise<number> {
  const operation = await log.operation(record);
  return operation.type === 'forward-backward' ? operation.data.length : 0;
}
