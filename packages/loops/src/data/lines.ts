/** Bytes into lines, whatever pieces they come in: newline or CRLF between them, a byte-order mark before the first left out. */

export type Line = {
  /** From 1. */
  readonly line: number;
  /** Of its first byte in the file. */
  readonly offset: number;
  /** Without what ends it. */
  readonly sizeBytes: number;
} & (
  | { readonly bytes: Uint8Array }
  /** Longer than the limit: its bytes were not kept. */
  | { readonly tooLong: true }
);

const newline = 0x0a;
const carriageReturn = 0x0d;
const byteOrderMark = [0xef, 0xbb, 0xbf];

export class LineSplitter {
  readonly #maxLineBytes: number;
  /** Pieces of the line that has not ended yet; empty when it is too long. */
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;
  #line = 1;
  /** Of the next byte that comes. */
  #offset = 0;
  #start = 0;

  constructor(maxLineBytes: number) {
    this.#maxLineBytes = maxLineBytes;
  }

  /** The lines that end in this piece. Those that lie in it whole are views of it. */
  push(chunk: Uint8Array): Line[] {
    const lines: Line[] = [];
    let from = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, from)) {
      this.#add(chunk.subarray(from, end));
      lines.push(this.#take());
      this.#offset = this.#start = this.#offset + 1;
      from = end + 1;
    }
    // Copied: who sends pieces may use their memory again.
    this.#add(chunk.slice(from));
    return lines;
  }

  /** The last line, where no newline ends it. */
  end(): Line[] {
    return this.#pieceBytes > 0 ? [this.#take()] : [];
  }

  #add(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return;
    this.#pieceBytes += bytes.byteLength;
    this.#offset += bytes.byteLength;
    // One more than the limit is room for the carriage return, three for the mark.
    if (this.#pieceBytes > this.#maxLineBytes + 1 + byteOrderMark.length) this.#pieces = [];
    else this.#pieces.push(bytes);
  }

  #take(): Line {
    const whole = this.#pieces.length === 1 ? this.#pieces[0]! : concatenate(this.#pieces);
    const isDropped = whole.byteLength !== this.#pieceBytes;
    const mark = this.#line === 1 && startsWith(whole, byteOrderMark) ? byteOrderMark.length : 0;
    const end = whole.at(-1) === carriageReturn ? whole.byteLength - 1 : whole.byteLength;
    const bytes = whole.subarray(mark, Math.max(mark, end));
    const sizeBytes = isDropped ? this.#pieceBytes : bytes.byteLength;
    const place = { line: this.#line, offset: this.#start + mark, sizeBytes };
    this.#line += 1;
    this.#pieces = [];
    this.#pieceBytes = 0;
    return sizeBytes > this.#maxLineBytes ? { ...place, tooLong: true } : { ...place, bytes };
  }
}

function startsWith(bytes: Uint8Array, prefix: readonly number[]): boolean {
  return prefix.every((byte, i) => bytes[i] === byte);
}

function concatenate(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return whole;
}
