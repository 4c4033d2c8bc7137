/** Records of an event file: length, its check sum, the bytes, theirs. */
import { crc32c } from './crc32c.js';

/** A record as it stands in the file. @see https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details */
export function record(data: Uint8Array): Buffer {
  const bytes = Buffer.alloc(8 + 4 + data.length + 4);
  bytes.writeBigUInt64LE(BigInt(data.length), 0);
  bytes.writeUInt32LE(masked(crc32c(bytes.subarray(0, 8))), 8);
  bytes.set(data, 12);
  bytes.writeUInt32LE(masked(crc32c(data)), 12 + data.length);
  return bytes;
}

/** A check sum that is stored beside what it is of is turned, so that sums over both don't cancel out. */
function masked(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
