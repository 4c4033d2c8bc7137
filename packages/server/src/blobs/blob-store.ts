/** Where payloads, results and checkpoints lie: immutable bytes, named by their SHA-256, apart from the database. */

import type { Readable } from 'node:stream';

/** A blob of a workspace. */
export interface BlobRef {
  readonly workspaceId: string;
  /** SHA-256 of the bytes, 64 hexadecimal digits. */
  readonly hash: string;
}

/** One file of a saved version. */
export interface ManifestEntry {
  /** Relative to the version's directory, `/` between its parts, no `..`. */
  readonly path: string;
  readonly hash: string;
  readonly sizeBytes: number;
}

/** Files of a saved version, in the order of their paths. */
export type Manifest = readonly ManifestEntry[];

export interface BlobStore {
  /**
   * Stores bytes, which must not be changed afterwards, and returns their hash once they are on the disk; the same bytes are stored once.
   * @throws `disk_full`: nothing is left behind
   */
  put(workspaceId: string, bytes: Uint8Array): Promise<string>;
  /** @throws `blob_damaged` when the blob is missing or its bytes are not those of its name */
  get(ref: BlobRef): Promise<Uint8Array>;
  /** Reads a blob through where it was not found whole before, or has changed since. @throws `blob_damaged` */
  verify(ref: BlobRef): Promise<void>;
  /** The bytes of a blob, verified before the first is given out; the stream is the caller's. @throws `blob_damaged` */
  read(ref: BlobRef): Promise<Readable>;
  /** Takes over the files of a directory (complete and on the disk already) without copying where the file system allows. */
  adopt(workspaceId: string, directory: string, files: readonly string[]): Promise<Manifest>;
  /**
   * Makes `directory` hold the files of a manifest, verified; it appears whole or not at all. One that is there already is verified as
   * well, and made anew where it is damaged. Its files are read-only and may be the blobs themselves.
   * @throws `blob_damaged`
   */
  materialize(workspaceId: string, manifest: Manifest, directory: string): Promise<void>;
  /** Removes a blob, unless it was written or asked for again within the grace time. Unknown ones are fine. */
  delete(ref: BlobRef): Promise<boolean>;
  /** Every blob there is. Half-written ones that a crash left are removed on the way. */
  all(): AsyncIterable<BlobRef>;
}
