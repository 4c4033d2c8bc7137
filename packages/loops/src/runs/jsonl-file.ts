/** JSON lines that outlive a crash: what a cut-off write left behind is neither read nor written after. */
import { createReadStream } from 'node:fs';
import { type FileHandle, open, truncate } from 'node:fs/promises';
import { LoopwrightError } from '@loopwright/protocol';
import { asWriteError, systemCode } from './write-error.js';

const lineEnd = 0x0a;

/** Appends lines. */
export class JsonlFile implements AsyncDisposable {
  readonly #path: string;
  #file: FileHandle | undefined;

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  /** Opens for appending. A last line without its end is cut off: nobody has been told that it was written. */
  static async open(path: string): Promise<JsonlFile> {
    let file: FileHandle | undefined;
    try {
      file = await open(path, 'a+');
      await file.truncate(await wholeSize(file));
      return new JsonlFile(path, file);
    } catch (error) {
      await file?.close();
      throw asWriteError(error, path);
    }
  }

  /**
   * Appends all values, and syncs them: they are on the disk when this resolves.
   *
   * @throws `disposed` once it is closed; `disk_full` and other write errors: what was half written is cut off again
   */
  async append(values: readonly object[]): Promise<void> {
    const file = this.#file;
    if (file === undefined) {
      throw new LoopwrightError({ code: 'disposed', message: `${this.#path}: was closed before this line came` });
    }
    if (values.length === 0) return;
    const { size } = await file.stat();
    try {
      await file.appendFile(values.map((value) => `${JSON.stringify(value)}\n`).join(''));
      await file.datasync();
    } catch (error) {
      await file.truncate(size).catch(() => undefined);
      throw asWriteError(error, this.#path);
    }
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Bytes up to and with the last line end. */
async function wholeSize(file: FileHandle): Promise<number> {
  const { size } = await file.stat();
  const chunk = Buffer.alloc(64 * 1024);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - chunk.length);
    const { bytesRead } = await file.read(chunk, 0, end - start, start);
    const at = chunk.subarray(0, bytesRead).lastIndexOf(lineEnd);
    if (at >= 0) return start + at + 1;
    end = start;
  }
  return 0;
}

/** A line with its number, from 1, or that one could not be read. */
export type ReadLine = { readonly line: number } & ({ readonly value: unknown } | { readonly isDamaged: true });

/** A longer line is no record of ours: it would fill the memory. */
const maxLineBytes = 64 * 1024 * 1024;

export interface ReadJsonlOptions {
  /** Nobody writes it any more: a last line without its end is told as damaged. Default false. */
  readonly isEnded?: boolean;
}

/**
 * Reads the lines of a file, which may be being written: a last line without its end is left out. Lines that are no JSON, or longer than 64 MiB, are told as
 * damaged. Without a file there are no lines.
 */
export async function* readJsonl(path: string, { isEnded = false }: ReadJsonlOptions = {}): AsyncGenerator<ReadLine> {
  let line = 0;
  for await (const { bytes, isCutOff } of linesOf(path)) {
    line += 1;
    if (isCutOff) {
      if (isEnded) yield { line, isDamaged: true };
      return;
    }
    const text = bytes?.toString('utf8').trim();
    if (text !== '') yield { line, ...((text === undefined ? undefined : parsed(text)) ?? { isDamaged: true }) };
  }
}

/** Cuts a file off before the first line that `isLater` says is later; damaged lines are not. Without a file nothing happens. @throws write errors */
export async function cutJsonl(path: string, isLater: (value: unknown) => boolean): Promise<void> {
  for await (const { bytes, start, isCutOff } of linesOf(path)) {
    const line = bytes === undefined || isCutOff ? undefined : parsed(bytes.toString('utf8'));
    if (line === undefined || !isLater(line.value)) continue;
    try {
      await truncate(path, start);
    } catch (error) {
      throw asWriteError(error, path);
    }
    return;
  }
}

interface Line {
  /** Offset of its first byte. */
  readonly start: number;
  /** Without the line end; undefined of a line that is too long. */
  readonly bytes: Buffer | undefined;
  /** The last one, without its line end. */
  readonly isCutOff: boolean;
}

async function* linesOf(path: string): AsyncGenerator<Line> {
  const stream = createReadStream(path, { highWaterMark: 256 * 1024 });
  let parts: Buffer[] = [];
  let held = 0;
  let start = 0;
  try {
    for await (const chunk of stream) {
      let rest = chunk as Buffer; // true: no encoding is set
      for (let end = rest.indexOf(lineEnd); end >= 0; end = rest.indexOf(lineEnd)) {
        const isTooLong = held + end > maxLineBytes;
        yield {
          start,
          bytes: isTooLong ? undefined : Buffer.concat([...parts, rest.subarray(0, end)]),
          isCutOff: false,
        };
        start += held + end + 1;
        rest = rest.subarray(end + 1);
        parts = [];
        held = 0;
      }
      held += rest.length;
      if (held <= maxLineBytes) parts.push(rest);
      else parts = [];
    }
    if (held > 0) yield { start, bytes: undefined, isCutOff: true };
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
  } finally {
    stream.destroy();
  }
}

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}
