/** The child's end of its pipes: lines in and out, and what the program prints. Imports nothing but Node: children may read nothing else. */
import { readSync, writeSync } from 'node:fs';

/** Descriptors that the parent opens: tasks come by one, answers go by the other. */
export const tasksFd = 3;
export const answersFd = 4;

const pause = new Int32Array(new SharedArrayBuffer(4));

/** A blocking reader of lines; null when the parent has closed its end. */
export function lineReader(fd: number): () => string | null {
  const chunk = Buffer.alloc(65_536);
  let parts: Buffer[] = [];
  let rest: Buffer = Buffer.alloc(0);
  return () => {
    for (;;) {
      const end = rest.indexOf(10);
      if (end >= 0) {
        const line = Buffer.concat([...parts, rest.subarray(0, end)]).toString('utf8');
        parts = [];
        rest = rest.subarray(end + 1);
        return line;
      }
      if (rest.length > 0) parts.push(rest);
      const count = retried(() => readSync(fd, chunk));
      if (count === 0) return null;
      rest = Buffer.from(chunk.subarray(0, count));
    }
  };
}

export function writeLine(fd: number, line: string): void {
  writeAll(fd, Buffer.from(`${line}\n`, 'utf8'));
}

export function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += retried(() => writeSync(fd, bytes, at));
}

/** A printer that stops sending, not the program, when `limitBytes` and one more are through: the parent then knows that it cut. */
export function printer(fd: number, limitBytes: number): (bytes: Uint8Array) => number {
  let left = limitBytes + 1;
  return (bytes) => {
    if (left > 0) {
      const sent = bytes.subarray(0, left);
      left -= sent.length;
      writeAll(fd, sent);
    }
    return bytes.length;
  };
}

function retried(act: () => number): number {
  for (;;) {
    try {
      return act();
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code; // true: the file system's errors are that
      if (code === 'EOF') return 0; // Windows tells the end of a pipe so
      if (code !== 'EAGAIN') throw error;
      Atomics.wait(pause, 0, 0, 1);
    }
  }
}
