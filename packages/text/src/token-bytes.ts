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
