/** Submissions that come again: by their number or token they find the operation that they made the first time. */
import { createHash } from 'node:crypto';
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import type { Transaction } from 'kysely';
import type { Tables } from '../store/tables.js';
import { encodeContainer } from './container.js';
import { type OperationRecord, operationFromRow } from './operation-record.js';
import type { SamplingRequest } from './resolve.js';

/** Where a submission stands in its session's order; sampling operations have no number. */
export interface Submission {
  readonly sequenceNumber?: number;
  readonly clientToken?: string;
  /** What a repetition must be equal in, where that is not the operation: of a sampling request, before a seed was drawn for it. */
  readonly requestHash?: string;
  /** The training client that submits, where it names itself. */
  readonly trainer?: string;
}

/**
 * The operation that holds the same number or token; undefined when both are free.
 * @throws `sequence_conflict` when that one had another payload or token, or a refused submission spent the number
 */
export async function findEarlier(
  trx: Transaction<Tables>,
  sessionId: string,
  { sequenceNumber = 0, clientToken }: Pick<Submission, 'sequenceNumber' | 'clientToken'>,
  payloadHash: string,
): Promise<OperationRecord | undefined> {
  const rows = await trx
    .selectFrom('operations')
    .selectAll()
    .where('session_id', '=', sessionId)
    .where((is) =>
      clientToken === undefined
        ? is('sequence_number', '=', sequenceNumber)
        : is.or([is('sequence_number', '=', sequenceNumber), is('client_token', '=', clientToken)]),
    )
    .execute();
  for (const row of rows) {
    const byToken = clientToken !== undefined && row.client_token === clientToken;
    if (row.payload_hash !== payloadHash) {
      throw byToken
        ? conflict('clientToken', 'a token that was not used with another operation', clientToken)
        : conflict('sequenceNumber', 'a number that was not used with another operation', String(sequenceNumber));
    }
    if (byToken && (row.sequence_number ?? 0) !== sequenceNumber) {
      throw conflict(
        'clientToken',
        `a token that was not used with number ${String(row.sequence_number)}`,
        clientToken,
      );
    }
    if (!byToken && clientToken !== undefined && row.client_token !== null) {
      throw conflict('sequenceNumber', 'a number that was not used with another client token', String(sequenceNumber));
    }
    return operationFromRow(row);
  }
  const spent = await trx
    .selectFrom('spent_numbers')
    .select('sequence_number')
    .where('session_id', '=', sessionId)
    .where('sequence_number', '=', sequenceNumber)
    .executeTakeFirst();
  if (spent !== undefined) {
    throw conflict('sequenceNumber', 'a number that no refused submission has used up', String(sequenceNumber));
  }
  return undefined;
}

/** Of a sampling request as it was submitted. */
export function requestHash(request: SamplingRequest): string {
  return createHash('sha256')
    .update(encodeContainer({ kind: 'request', request }))
    .digest('hex');
}

function conflict(field: string, expected: string, got: string): LoopwrightError {
  return complaint({
    code: 'sequence_conflict',
    field,
    expected,
    got,
    remedy: 'repeat a submission only with its own number, token and content; new operations take the next number',
  });
}
