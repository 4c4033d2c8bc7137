/** Room for request bodies: bytes are taken before they are read, first come first served, and given back when the request is answered. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import type { Clock } from '../clock.js';

/** Bytes that a request holds. */
export interface BodyShare {
  /** The body turned out to be that long. */
  shrink(bytes: number): void;
  /** Giving back twice is harmless. */
  release(): void;
}

export interface BodyRoomOptions {
  readonly bytes: number;
  readonly waitMs: number;
  readonly clock: Clock;
}

interface Waiting {
  readonly bytes: number;
  readonly enter: () => void;
}

export class BodyRoom {
  readonly #options: BodyRoomOptions;
  readonly #queue: Waiting[] = [];
  #free: number;

  constructor(options: BodyRoomOptions) {
    this.#options = options;
    this.#free = options.bytes;
  }

  /** Bytes that nobody holds. */
  get freeBytes(): number {
    return this.#free;
  }

  /**
   * Waits for `bytes`; a body above the whole room gets all of it.
   * @throws `limit_exceeded` when there is none in time, or the signal fires
   */
  async take(bytes: number, signal?: AbortSignal): Promise<BodyShare> {
    const wanted = Math.min(bytes, this.#options.bytes);
    if (this.#queue.length > 0 || wanted > this.#free) await this.#wait(wanted, signal);
    else this.#free -= wanted;
    let held = wanted;
    const keep = (left: number) => {
      if (left >= held) return;
      this.#free += held - left;
      held = left;
      this.#admit();
    };
    return { shrink: keep, release: () => keep(0) };
  }

  #wait(bytes: number, signal: AbortSignal | undefined): Promise<void> {
    const { waitMs, clock } = this.#options;
    return new Promise<void>((resolve, reject) => {
      const leave = () => {
        cancelTimer();
        signal?.removeEventListener('abort', giveUp);
        const at = this.#queue.indexOf(waiting);
        if (at >= 0) this.#queue.splice(at, 1);
      };
      const giveUp = () => {
        leave();
        reject(noRoom(bytes, waitMs));
        this.#admit(); // a smaller one behind may fit
      };
      const waiting: Waiting = {
        bytes,
        enter: () => {
          leave();
          resolve();
        },
      };
      const cancelTimer = clock.after(waitMs, giveUp);
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#queue.push(waiting);
    });
  }

  #admit(): void {
    for (let next = this.#queue[0]; next !== undefined && next.bytes <= this.#free; next = this.#queue[0]) {
      this.#free -= next.bytes;
      next.enter();
    }
  }
}

function noRoom(bytes: number, waitMs: number): LoopwrightError {
  const error = complaint({
    code: 'limit_exceeded',
    field: 'body',
    expected: `room for ${bytes} bytes within ${waitMs / 1000} s`,
    got: 'other bodies in all of it',
  });
  return error;
}
