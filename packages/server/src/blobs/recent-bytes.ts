/** The bytes that were written last: an operation's payload and result are read once, right after they were stored. */

/** Bigger ones are read back from the disk, where the time of that does not matter beside the rest. */
const maxEntryBytes = 1 << 20;
const maxTotalBytes = 16 << 20;
/** What an entry takes beside its bytes, roughly: small ones would come to far more than their sum. */
const entryBytes = 1024;

export class RecentBytes {
  readonly #entries = new Map<string, Uint8Array>();
  #totalBytes = 0;

  /** The bytes must not be changed afterwards. */
  add(key: string, bytes: Uint8Array): void {
    if (bytes.byteLength > maxEntryBytes) return;
    this.remove(key);
    this.#entries.set(key, bytes);
    this.#totalBytes += bytes.byteLength + entryBytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#totalBytes <= maxTotalBytes) break;
      this.remove(oldest);
    }
  }

  get(key: string): Uint8Array | undefined {
    return this.#entries.get(key);
  }

  remove(key: string): void {
    const known = this.#entries.get(key);
    if (known === undefined) return;
    this.#totalBytes -= known.byteLength + entryBytes;
    this.#entries.delete(key);
  }
}
