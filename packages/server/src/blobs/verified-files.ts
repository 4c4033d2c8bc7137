/**
 * Which files were read through and found to hold what they should. One is read again when its size, time or place on the disk has changed,
 * and once in each process: so that weights that are sampled from a thousand times are not hashed as often.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';

/** So that the memory of a long run does not grow with its saves. */
const maxEntries = 10_000;

export class VerifiedFiles {
  /** SHA-256 by what a file is known by. */
  readonly #hashes = new Map<string, string>();

  /** Whether a file holds the bytes of that hash. @throws the error of the file system where it can't be read */
  async check(path: string, hash: string): Promise<boolean> {
    if (this.#hashes.get(await identity(path)) === hash) return true;
    return (await this.hash(path)).hash === hash;
  }

  /** Reads a file through. @throws as `check` */
  async hash(path: string): Promise<{ readonly hash: string; readonly sizeBytes: number }> {
    const key = await identity(path);
    const digest = createHash('sha256');
    let sizeBytes = 0;
    for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
      const bytes = chunk as Buffer; // true: a stream without an encoding yields buffers
      digest.update(bytes);
      sizeBytes += bytes.byteLength;
    }
    const hash = digest.digest('hex');
    // A file that was written meanwhile is known by another key from then on.
    this.#remember(key, hash);
    return { hash, sizeBytes };
  }

  /** Notes a file whose time was changed after it was checked. */
  async trust(path: string, hash: string): Promise<void> {
    this.#remember(await identity(path), hash);
  }

  #remember(key: string, hash: string): void {
    this.#hashes.delete(key);
    this.#hashes.set(key, hash);
    const [oldest] = this.#hashes.keys();
    if (this.#hashes.size > maxEntries && oldest !== undefined) this.#hashes.delete(oldest);
  }
}

/** Links of one file have the same: bytes that are found damaged at one are so at all. */
async function identity(path: string): Promise<string> {
  const { dev, ino, size, mtimeNs } = await stat(path, { bigint: true });
  return `${dev}:${ino}:${size}:${mtimeNs}`;
}
