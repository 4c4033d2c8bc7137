/** Submissions that come again: by their number or token they find the operation that they made the first time. */
import { createHash } from 'node:crypto';
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import type { Transaction } from 'kysely';
import { prepared } from '../store/prepared.js';
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

interface Numbered {
  readonly sessionId: string;
  readonly sequenceNumber: number;
}

const byNumber = prepared<Numbered>()((database, { sessionId, sequenceNumber }) =>
  database
    .selectFrom('operations')
    .selectAll()
    .where('session_id', '=', sessionId)
    .where('sequence_number', '=', sequenceNumber),
);
const byToken = prepared<{ readonly sessionId: string; readonly clientToken: string }>()(
  (database, { sessionId, clientToken }) =>
    database
      .selectFrom('operations')
      .selectAll()
      .where('session_id', '=', sessionId)
      .where('client_token', '=', clientToken),
);
const spentNumber = prepared<Numbered>()((database, { sessionId, sequenceNumber }) =>
  database
    .selectFrom('spent_numbers')
    .select('sequence_number')
    .where('session_id', '=', sessionId)
    .where('sequence_number', '=', sequenceNumber),
);

/**
 * The operation that holds the same number or token; undefined when both are free.
 * @throws `sequence_conflict` when that one had another payload or token, or a refused submission spent the number
 */
export async function findEarlier(
  trx: Transaction<Tables>,
  sessionId: string,
  { sequenceNumber, clientToken }: Pick<Submission, 'sequenceNumber' | 'clientToken'>,
  payloadHash: string,
): Promise<OperationRecord | undefined> {
  const numbered = sequenceNumber === undefined ? [] : (await byNumber(trx, { sessionId, sequenceNumber })).rows;
  const named = clientToken === undefined ? [] : (await byToken(trx, { sessionId, clientToken })).rows;
  const row = numbered[0] ?? named[0];
  if (row !== undefined) {
    const isSameToken = clientToken !== undefined && row.client_token === clientToken;
    if (row.payload_hash !== payloadHash) {
      throw isSameToken
        ? conflict('clientToken', 'a token that was not used with another operation', clientToken)
        : conflict('sequenceNumber', 'a number that was not used with another operation', String(sequenceNumber));
    }
    if (isSameToken && row.sequence_number !== (sequenceNumber ?? null)) {
      throw conflict(
        'clientToken',
        `a token that was not used with number ${String(row.sequence_number)}`,
        clientToken,
      );
    }
    if (!isSameToken && clientToken !== undefined && row.client_token !== null) {
      throw conflict('sequenceNumber', 'a number that was not used with another client token', String(sequenceNumber));
    }
    return operationFromRow(row);
  }
  if (sequenceNumber === undefined) return undefined;
  const [spent] = (await spentNumber(trx, { sessionId, sequenceNumber })).rows;
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
