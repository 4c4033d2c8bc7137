/** A file of events that is appended to: what a failed write left behind is cut off, for readers stop at a damaged record. */
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../runs/make-folder.js';
import { asWriteError } from '../../runs/write-error.js';
import { versionEvent } from './event.js';
import { record } from './record.js';

export class EventFile {
  readonly path: string;
  readonly #file: FileHandle;
  #size = 0;

  private constructor(path: string, file: FileHandle) {
    this.path = path;
    this.#file = file;
  }

  /** A new file in the folder. Readers take the files of a folder in the order of their names: that of the time. @throws write errors */
  static async open(folder: string, atMs: number): Promise<EventFile> {
    const seconds = String(Math.floor(atMs / 1000)).padStart(10, '0');
    for (let n = 0; ; n++) {
      const path = join(folder, `events.out.tfevents.${seconds}.loopwright.${process.pid}.${n}`);
      try {
        await makeFolder(folder);
        const events = new EventFile(path, await open(path, 'ax'));
        await events.append([versionEvent(atMs)]);
        return events;
      } catch (error) {
        if (!isThere(error)) throw asWriteError(error, path);
      }
    }
  }

  /** @throws write errors */
  async append(events: readonly Uint8Array[]): Promise<void> {
    const bytes = Buffer.concat(events.map(record));
    try {
      await this.#file.appendFile(bytes);
      this.#size += bytes.length;
    } catch (error) {
      await this.#file.truncate(this.#size).catch(() => undefined);
      throw asWriteError(error, this.path);
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

function isThere(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EEXIST';
}
