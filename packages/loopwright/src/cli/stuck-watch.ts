/** Ends the command where the user's code never gives the thread back: from within nothing can. */
import { Worker } from 'node:worker_threads';
import { escapeText } from '@loopwright/loops';
import type { LastWordsOptions } from './last-words.js';
import type { StuckWatched } from './stuck-worker.js';

export interface StuckWatchOptions extends LastWordsOptions {
  /** Milliseconds that the thread may be held, at least. */
  readonly limitMs: number;
  /** Whose loop it would be. */
  readonly who: 'grader' | 'task';
}

/** Bytes of the text that says where it is. */
const placeBytes = 512;

/** Watches from a thread of its own until it is disposed. A grader that waits holds no thread: its time is the gate's. */
export class StuckWatch implements Disposable {
  readonly #beats = new Int32Array(new SharedArrayBuffer(8));
  readonly #place = new Uint8Array(new SharedArrayBuffer(placeBytes));
  readonly #timer: NodeJS.Timeout;

  constructor(options: StuckWatchOptions) {
    const { limitMs } = options;
    const workerData: StuckWatched = { beats: this.#beats, place: this.#place, ...options };
    new Worker(new URL('./stuck-worker.js', import.meta.url), { workerData, execArgv: [] }).unref();
    this.#timer = setInterval(() => this.#beat(), Math.min(1000, limitMs / 4)).unref();
  }

  /** What goes on now: shown if it is the last. */
  at(place: string): void {
    const { written } = new TextEncoder().encodeInto(escapeText(place), this.#place);
    Atomics.store(this.#beats, 1, written);
    this.#beat();
  }

  #beat(): void {
    Atomics.add(this.#beats, 0, 1);
    Atomics.notify(this.#beats, 0);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    Atomics.store(this.#beats, 0, -1);
    Atomics.notify(this.#beats, 0);
  }
}
