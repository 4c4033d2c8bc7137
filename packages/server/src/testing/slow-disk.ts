/** A disk whose syncs wait, or fail, as a test wants them to. */
import { type PendingHold, pendingHold } from '@loopwright/testkit';
import type { SyncFile } from '../store/wal-sync.js';

export class SlowDisk {
  /** How many syncs were asked for. */
  syncs = 0;
  #hold: PendingHold | undefined;
  #code: string | undefined;

  readonly sync: SyncFile = async () => {
    this.syncs++;
    this.#hold?.enter();
    await this.#hold?.released;
    if (this.#code !== undefined) throw Object.assign(new Error('the disk failed'), { code: this.#code });
  };

  /** The syncs from here on wait. */
  hold(): void {
    this.#hold = pendingHold();
  }

  /** Resolves when a sync has been asked for since {@link hold}. */
  async asked(): Promise<void> {
    await this.#hold?.entered;
  }

  release(): void {
    this.#hold?.release();
    this.#hold = undefined;
  }

  /** The syncs from here on fail with a code of the system. */
  fail(code: string): void {
    this.#code = code;
  }

  mend(): void {
    this.#code = undefined;
  }
}
