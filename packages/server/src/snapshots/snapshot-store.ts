/**
 * Snapshots of sessions: what an engine wrote into a directory, and the row that says what it stands for. A directory without a row
 * is a half-made one, and goes with the next start.
 */
import { open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionPlan } from '@loopwright/engine';
import type { Clock } from '../clock.js';
import type { Durability } from '../durability.js';
import { liveStatuses, type SessionRecord } from '../sessions/session-record.js';
import type { Database } from '../store/open-database.js';

/** Of each session: the one before stays, for the case that the newest can't be read. */
const kept = 2;

export interface SnapshotRecord {
  readonly id: string;
  readonly sessionId: string;
  /** The training operations below this number had their turn. */
  readonly nextSequenceNumber: number;
  readonly sizeBytes: number;
}

/** What the file itself says that it stands for; must agree with its row. */
export interface SnapshotMetadata {
  readonly session: string;
  readonly nextSequenceNumber: number;
  /** A pass failed since the last step, so that the next one is refused. */
  readonly gradientIncomplete: boolean;
}

export interface SnapshotStoreOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly root: string;
  /** `power-loss` by default. */
  readonly durability?: Durability | undefined;
}

export class SnapshotStore {
  readonly #options: SnapshotStoreOptions;

  constructor(options: SnapshotStoreOptions) {
    this.#options = options;
  }

  /** Where the files of a snapshot are, or are to be written. */
  directory({ sessionId, id }: Pick<SnapshotRecord, 'sessionId' | 'id'>): string {
    return join(this.#options.root, sessionId, id);
  }

  /** Notes a snapshot whose files are whole and on the disk; from here on sessions are made from it. Earlier ones than the last go. */
  async add(session: SessionRecord, snapshot: SnapshotRecord, plan: ExecutionPlan): Promise<void> {
    const { database, clock, root } = this.#options;
    await this.#syncDirectory(join(root, session.id));
    await this.#syncDirectory(root);
    const gone = await database.transaction().execute(async (trx) => {
      await trx
        .insertInto('snapshots')
        .values({
          workspace_id: session.workspaceId,
          id: snapshot.id,
          session_id: session.id,
          next_sequence_number: snapshot.nextSequenceNumber,
          plan: JSON.stringify(plan),
          size_bytes: snapshot.sizeBytes,
          created_at_ms: clock.now(),
        })
        .execute();
      const old = trx
        .selectFrom('snapshots')
        .select('id')
        .where('session_id', '=', session.id)
        .orderBy('next_sequence_number', 'desc')
        .limit(1_000_000)
        .offset(kept);
      return trx.deleteFrom('snapshots').where('id', 'in', old).returning('id').execute();
    });
    for (const { id } of gone) await this.discard({ sessionId: session.id, id }).catch(() => {}); // goes with the next start
  }

  /** Of a session under this plan, newest first: those that stand before operations which have not had their turn are none of it. */
  async ofSession(
    session: SessionRecord,
    { nextSequenceNumber, plan }: { readonly nextSequenceNumber: number; readonly plan: ExecutionPlan },
  ): Promise<SnapshotRecord[]> {
    const rows = await this.#options.database
      .selectFrom('snapshots')
      .selectAll()
      .where('session_id', '=', session.id)
      .where('next_sequence_number', '<=', nextSequenceNumber)
      .where('plan', '=', JSON.stringify(plan))
      .orderBy('next_sequence_number', 'desc')
      .execute();
    return rows.map((row) => ({
      id: row.id,
      sessionId: row.session_id,
      nextSequenceNumber: row.next_sequence_number,
      sizeBytes: row.size_bytes,
    }));
  }

  /** Removes the files of a snapshot that has no row. */
  async discard(snapshot: Pick<SnapshotRecord, 'sessionId' | 'id'>): Promise<void> {
    await rm(this.directory(snapshot), { recursive: true, force: true });
  }

  /** Removes all of a session, which has ended. */
  async removeAll(sessionId: string): Promise<void> {
    await this.#options.database.deleteFrom('snapshots').where('session_id', '=', sessionId).execute();
    await rm(join(this.#options.root, sessionId), { recursive: true, force: true });
  }

  /** Removes what an earlier process left: of ended sessions, and what it had not finished writing. */
  async tidy(): Promise<void> {
    const { database, root } = this.#options;
    const live = database.selectFrom('sessions').select('id').where('status', 'in', liveStatuses);
    await database.deleteFrom('snapshots').where('session_id', 'not in', live).execute();
    const rows = await database.selectFrom('snapshots').select(['session_id', 'id']).execute();
    const known = new Set(rows.flatMap(({ session_id, id }) => [session_id, `${session_id}/${id}`]));
    for (const sessionId of await namesIn(root)) {
      const left = known.has(sessionId) ? await namesIn(join(root, sessionId)) : [''];
      for (const id of left) {
        if (!known.has(`${sessionId}/${id}`)) await this.discard({ sessionId, id });
      }
    }
  }

  /** So that the names of new directories survive as their rows do. Windows can't sync directories and needs no such call. */
  async #syncDirectory(path: string): Promise<void> {
    if (this.#options.durability === 'process-crash' || process.platform === 'win32') return;
    const directory = await open(path, 'r');
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  }
}

async function namesIn(directory: string): Promise<string[]> {
  return readdir(directory).catch(() => []); // none there yet
}
