/** What the operation log holds: single operations, and those of a session in their order. */
import { complaint } from '@loopwright/protocol';
import type { Database } from '../store/open-database.js';
import { prepared } from '../store/prepared.js';
import { type OperationRecord, operationFromRow, type TrainingRecord } from './operation-record.js';

const byId = prepared<{ readonly sessionId: string; readonly id: string }>()((database, { sessionId, id }) =>
  database.selectFrom('operations').selectAll().where('id', '=', id).where('session_id', '=', sessionId),
);

export class OperationReader {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async spentNumbers(sessionId: string): Promise<number[]> {
    const rows = await this.#database
      .selectFrom('spent_numbers')
      .select('sequence_number')
      .where('session_id', '=', sessionId)
      .execute();
    return rows.map((row) => row.sequence_number);
  }

  /** @throws `unknown_operation` when the session has no such operation of that kind */
  async get(sessionId: string, id: string, kind?: OperationRecord['kind']): Promise<OperationRecord> {
    const [row] = (await byId(this.#database, { sessionId, id })).rows;
    const record = row === undefined ? undefined : operationFromRow(row);
    if (record === undefined || (kind !== undefined && record.kind !== kind)) {
      throw complaint({
        code: 'unknown_operation',
        field: 'operationId',
        expected: `the id of a ${kind ?? ''} operation of this session`.replace('  ', ' '),
        got: `${id.length} characters`,
      });
    }
    return record;
  }

  /** As {@link get}, of whichever session. @throws `unknown_operation` */
  async find(workspaceId: string, id: string): Promise<OperationRecord> {
    const row = await this.#database
      .selectFrom('operations')
      .selectAll()
      .where('id', '=', id)
      .where('workspace_id', '=', workspaceId)
      .executeTakeFirst();
    if (row !== undefined) return operationFromRow(row);
    const got = `${id.length} characters`;
    throw complaint({ code: 'unknown_operation', field: 'operationId', expected: 'the id of an operation', got });
  }

  /** Operations of a session in the order of their acceptance. */
  async ofSession(sessionId: string, { open = false }: { readonly open?: boolean } = {}): Promise<OperationRecord[]> {
    let query = this.#database.selectFrom('operations').selectAll().where('session_id', '=', sessionId);
    if (open) query = query.where('ended_at_ms', 'is', null);
    return (await query.orderBy('created_at_ms').orderBy('id').execute()).map(operationFromRow);
  }

  /** The training operation of a number. */
  async ofNumber(sessionId: string, sequenceNumber: number): Promise<OperationRecord | undefined> {
    const row = await this.#database
      .selectFrom('operations')
      .selectAll()
      .where('session_id', '=', sessionId)
      .where('sequence_number', '=', sequenceNumber)
      .executeTakeFirst();
    return row === undefined ? undefined : operationFromRow(row);
  }

  /** The training operations of a session, in the order of their numbers. */
  async training(sessionId: string): Promise<TrainingRecord[]> {
    const rows = await this.#database
      .selectFrom('operations')
      .selectAll()
      .where('session_id', '=', sessionId)
      .where('kind', '=', 'training')
      .orderBy('sequence_number')
      .execute();
    return rows.map(operationFromRow).filter((record) => record.kind === 'training');
  }

  /** Training operations with numbers above the first and below the second, by their numbers. */
  async trainingBetween(sessionId: string, after: number, before: number): Promise<TrainingRecord[]> {
    const rows = await this.#database
      .selectFrom('operations')
      .selectAll()
      .where('session_id', '=', sessionId)
      .where('kind', '=', 'training')
      .where('sequence_number', '>', after)
      .where('sequence_number', '<', before)
      .orderBy('sequence_number')
      .execute();
    return rows.map(operationFromRow).filter((record) => record.kind === 'training');
  }
}
