/** Bodies that clients compress where the client configuration asks them to. */
import { complaint } from '@loopwright/protocol';
import { Decompress } from 'fzstd';

/** @throws `payload_too_large` before more than `limit` bytes are there; `invalid_argument` for what is not zstd */
export function decompressZstd(bytes: Uint8Array, limit: number): Uint8Array {
  const parts: Uint8Array[] = [];
  let size = 0;
  let isWhole = false;
  const stream = new Decompress((part, isLast) => {
    size += part.byteLength;
    if (size > limit) {
      throw complaint({
        code: 'payload_too_large',
        field: 'body',
        expected: `at most ${limit} bytes unpacked`,
        got: 'more',
      });
    }
    parts.push(part.slice());
    isWhole = isLast === true;
  });
  try {
    stream.push(bytes, true);
  } catch (cause) {
    if (size > limit) throw cause;
    throw notZstd(bytes, cause);
  }
  if (!isWhole || size === 0) throw notZstd(bytes);
  const whole = new Uint8Array(size);
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.byteLength;
  }
  return whole;
}

function notZstd(bytes: Uint8Array, cause?: unknown) {
  return complaint({
    field: 'body',
    expected: 'a body compressed with zstd',
    got: `${bytes.byteLength} bytes that are not`,
    cause,
  });
}
