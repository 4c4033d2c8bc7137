/** CRC-32C, the check sum of event files. Node's own `crc32` has another polynomial. */

/** Of 0x1EDC6F41, bits reversed. */
const polynomial = 0x82f63b78;

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ polynomial : value >>> 1;
  return value;
});

/** @see RFC 3720, section 12.1 */
export function crc32c(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = table[(value ^ byte) & 0xff]! ^ (value >>> 8); // true: the table has 256 entries
  return (value ^ 0xffffffff) >>> 0;
}
