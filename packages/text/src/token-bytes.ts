/** Byte-level vocabularies: each byte is written as one printable character (the GPT-2 table), and back. */

/** Bytes that stand for themselves: printable ASCII and Latin-1; the others get the characters from U+0100 on. */
const printable = (byte: number): boolean =>
  (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;

const byteOfCharacter: ReadonlyMap<string, number> = (() => {
  const table = new Map<string, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    table.set(String.fromCharCode(printable(byte) ? byte : next), byte);
    if (!printable(byte)) next += 1;
  }
  return table;
})();

const encoder = new TextEncoder();

/** The bytes that a token of a byte-level vocabulary stands for; text outside the table is taken as UTF-8. */
export function bytesOfToken(token: string): Uint8Array {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = byteOfCharacter.get(token.charAt(i));
    if (byte === undefined) return encoder.encode(token);
    bytes[i] = byte;
  }
  return bytes;
}

const characterOfByte: ReadonlyMap<number, string> = new Map(
  [...byteOfCharacter].map(([character, byte]) => [byte, character]),
);

/** How a byte-level vocabulary writes these bytes. */
export function tokenOfBytes(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => characterOfByte.get(byte)!).join(''); // The table has all 256.
}

/** Runs of `<0xE4>` tokens as their text: the library drops a byte-order mark and joins broken bytes differently. */
export function joinByteTokens(tokens: readonly string[]): string[] {
  const joined: string[] = [];
  let bytes: number[] = [];
  const flush = (): void => {
    if (bytes.length === 0) return;
    try {
      joined.push(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes)));
    } catch {
      joined.push('\ufffd'.repeat(bytes.length)); // as the reference: one for each byte of a broken run
    }
    bytes = [];
  };
  for (const token of tokens) {
    const hex = /^<0x([0-9A-Fa-f]{2})>$/.exec(token)?.[1];
    if (hex === undefined) {
      flush();
      joined.push(token);
    } else bytes.push(Number.parseInt(hex, 16));
  }
  flush();
  return joined;
}
