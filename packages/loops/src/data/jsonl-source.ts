/** JSONL from any bytes: a file, a response, a text in memory. */
import { hashBytes } from './data-hash.js';
import { parseJsonRow } from './json-row.js';
import { type Line, LineSplitter } from './lines.js';
import { type RowFault, type RowPlace, rowError } from './row.js';
import type { ReadSourceOptions, RowSource, SourceRecord } from './source.js';

/** The longest line that is read by default: 64 MiB. Longer ones are row errors, and are never held in memory. */
export const defaultMaxLineBytes = 64 * 1024 * 1024;

export interface JsonlOptions {
  /** Name of the source in messages. */
  readonly file: string;
  readonly maxLineBytes?: number;
}

/** Opened anew for each reading. */
export type OpenBytes = (options: ReadSourceOptions) => AsyncIterable<Uint8Array>;

/** A source over bytes that can be read again and again. */
export function jsonlSource(open: OpenBytes, { file, maxLineBytes = defaultMaxLineBytes }: JsonlOptions): RowSource {
  return {
    file,
    hash: (options = {}) => hashBytes(open(options), options),
    async *read(options = {}) {
      const splitter = new LineSplitter(maxLineBytes);
      const { only = () => true } = options;
      const records = (lines: readonly Line[]) =>
        lines.filter(({ offset }) => only(offset)).map((line) => readLine(line, { file, maxLineBytes }));
      for await (const chunk of open(options)) {
        options.signal?.throwIfAborted();
        const found = records(splitter.push(chunk));
        if (found.length > 0) yield found;
      }
      const last = records(splitter.end());
      if (last.length > 0) yield last;
    },
  };
}

/** A source over a text in memory. */
export function textSource(text: string, options: JsonlOptions): RowSource {
  const bytes = new TextEncoder().encode(text);
  return jsonlSource(async function* () {
    yield bytes;
  }, options);
}

/** A line as a record. */
export function readLine(line: Line, { file, maxLineBytes = defaultMaxLineBytes }: JsonlOptions): SourceRecord {
  const { line: number, offset, sizeBytes } = line;
  const place = { line: number, offset, sizeBytes };
  const at: RowPlace = { file, line: number };
  if ('tooLong' in line) {
    const fault = {
      expected: `a line of at most ${maxLineBytes} bytes`,
      got: `${sizeBytes}`,
      remedy: 'raise maxLineBytes if the row is meant to be so long',
    };
    return { ...place, type: 'error', error: rowError(fault, at) };
  }
  const text = decode(line.bytes);
  if (text === undefined) {
    return { ...place, type: 'error', error: rowError(encodingFault(line), at, replaced(line.bytes)) };
  }
  if (isBlank(text)) return { ...place, type: 'blank' };
  const parsed = parseJsonRow(text);
  if ('fault' in parsed) return { ...place, type: 'error', error: rowError(parsed.fault, at, text) };
  return { ...place, type: 'row', row: parsed.value };
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const lenient = new TextDecoder('utf-8', { ignoreBOM: true });

function decode(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes);
  } catch {
    return undefined;
  }
}

function replaced(bytes: Uint8Array): string {
  return lenient.decode(bytes);
}

/** Only what JSON calls white space: other lines hold something that is no row. */
function isBlank(text: string): boolean {
  return /^[ \t\r]*$/.test(text);
}

function encodingFault({ bytes, line }: Extract<Line, { bytes: Uint8Array }>): RowFault {
  const [first, second] = bytes;
  const isUtf16 = line === 1 && ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff));
  return {
    index: validPrefix(bytes),
    expected: 'UTF-8',
    got: isUtf16 ? 'UTF-16' : 'a byte that is none',
    remedy: 'save the file as UTF-8',
  };
}

/** Characters before the first byte that is no UTF-8. */
function validPrefix(bytes: Uint8Array): number {
  let [low, high] = [0, bytes.byteLength];
  // The longest prefix that decodes when its last character may still be cut: found by halving.
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (isValidSoFar(bytes.subarray(0, middle))) low = middle;
    else high = middle - 1;
  }
  let end = low;
  while (end > 0 && decode(bytes.subarray(0, end)) === undefined) end -= 1;
  return decode(bytes.subarray(0, end))?.length ?? 0;
}

function isValidSoFar(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: true });
    return true;
  } catch {
    return false;
  }
}
