/** How far a download is: a line that is written over, on terminals; an event a second, for programs. */
import type { PullEvent } from '../../hub/pull-model.js';
import type { Console } from '../console.js';
import { StatusLine } from '../status-line.js';
import { bytesText, percentText } from '../text.js';

type DownloadState = Extract<PullEvent, { readonly type: 'pull-progress' }>;

export class DownloadProgress implements Disposable {
  readonly #line: StatusLine;
  readonly #now: () => number;
  #first: { readonly atMs: number; readonly bytes: number } | undefined;

  constructor(console: Console, now: () => number = Date.now) {
    this.#line = new StatusLine(console, now);
    this.#now = now;
  }

  show(state: DownloadState): void {
    const { file, doneBytes, totalBytes } = state;
    const atMs = this.#now();
    // What was there already took no time; begun again, the speed is that of the new beginning.
    if (this.#first === undefined || doneBytes < this.#first.bytes) this.#first = { atMs, bytes: doneBytes };
    const seconds = (atMs - this.#first.atMs) / 1000;
    const bytesPerSecond = seconds > 0 ? Math.round((doneBytes - this.#first.bytes) / seconds) : 0;
    this.#line.show({
      event: { ...state, bytesPerSecond },
      text: `${percentText(doneBytes / totalBytes)} of ${bytesText(totalBytes)}, ${bytesText(bytesPerSecond)}/s, ${file}`,
    });
  }

  /** Before anything else is written. */
  clear(): void {
    this.#line.clear();
  }

  [Symbol.dispose](): void {
    this.clear();
  }
}
