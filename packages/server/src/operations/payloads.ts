/**
 * Where the inputs and results of operations lie: small ones in the database, so that they are on the disk with the commit that names
 * them, and large ones as blobs, which are there before it.
 */
import { createHash } from 'node:crypto';
import type { Transaction } from 'kysely';
import type { BlobRef, BlobStore } from '../blobs/blob-store.js';
import { damagedBlob } from '../blobs/damaged-blob.js';
import { RecentBytes } from '../blobs/recent-bytes.js';
import type { Database } from '../store/open-database.js';
import { prepared } from '../store/prepared.js';
import type { Tables } from '../store/tables.js';

/** A file of its own costs two waits for the disk, which the commit need not make again; from here on, copying twice costs more. */
const smallBytes = 32 * 1024;

const keep = prepared<{ readonly workspaceId: string; readonly hash: string; readonly bytes: Uint8Array }>()(
  (database, { workspaceId, hash, bytes }) =>
    database
      .insertInto('small_payloads')
      .values({ workspace_id: workspaceId, hash, bytes })
      .onConflict((on) => on.doNothing()),
);

export interface StagedPayload {
  /** SHA-256 of the bytes. */
  readonly hash: string;
  /** To be called in the transaction that names the hash. */
  write(trx: Transaction<Tables>): Promise<void>;
}

export class Payloads {
  readonly #database: Database;
  readonly #blobs: BlobStore;
  readonly #recent = new RecentBytes();

  constructor({ database, blobs }: { readonly database: Database; readonly blobs: BlobStore }) {
    this.#database = database;
    this.#blobs = blobs;
  }

  /** Takes bytes, which must not be changed afterwards. @throws `disk_full`: nothing is left behind */
  async stage(workspaceId: string, bytes: Uint8Array): Promise<StagedPayload> {
    if (bytes.byteLength > smallBytes)
      return { hash: await this.#blobs.put(workspaceId, bytes), write: () => Promise.resolve() };
    const hash = sha256(bytes);
    this.#recent.add(keyOf({ workspaceId, hash }), bytes);
    return {
      hash,
      write: async (trx) => {
        await keep(trx, { workspaceId, hash, bytes });
      },
    };
  }

  /** @throws `blob_damaged` when it is missing or its bytes are not those of its hash */
  async get(ref: BlobRef): Promise<Uint8Array> {
    const recent = this.#recent.get(keyOf(ref));
    if (recent !== undefined) return recent;
    const row = await this.#database
      .selectFrom('small_payloads')
      .select('bytes')
      .where('workspace_id', '=', ref.workspaceId)
      .where('hash', '=', ref.hash)
      .executeTakeFirst();
    if (row === undefined) return this.#blobs.get(ref);
    const bytes = new Uint8Array(row.bytes); // libsql gives an ArrayBuffer
    if (sha256(bytes) !== ref.hash) throw damagedBlob(ref, 'holds other bytes');
    return bytes;
  }
}

function keyOf({ workspaceId, hash }: BlobRef): string {
  return `${workspaceId}/${hash}`;
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
