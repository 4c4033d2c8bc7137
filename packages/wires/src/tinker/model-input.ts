/** Model inputs: chunks of JSON or protobuf into token ids. */
import { complaint } from '@loopwright/protocol';
import { arrayAt, describeValue, objectAt, showKey } from '../checks.js';
import { readIds } from '../tensor-data.js';
import { int32sOf } from './buffers.js';
import type { Chunk } from './tinker_pb.js';

/** @throws `invalid_argument` naming the chunk or the position; images and audio are refused */
export function decodeModelInput(value: unknown, field: string): Int32Array {
  const chunks = arrayAt(objectAt(value, field).chunks, `${field}.chunks`, { min: 1 });
  return joined(
    chunks.map((chunk, index) => {
      const at = `${field}.chunks[${index}]`;
      const { type, tokens } = objectAt(chunk, at);
      if (type !== 'encoded_text')
        throw unsupported(at, typeof type === 'string' ? showKey(type) : describeValue(type));
      const list = arrayAt(tokens, `${at}.tokens`);
      return readIds({ data: list, shape: [list.length], field: `${at}.tokens` }).data;
    }),
    field,
  );
}

/** As {@link decodeModelInput}. */
export function decodeChunks(chunks: readonly Chunk[], field: string): Int32Array {
  return joined(
    chunks.map(({ chunk }, index) => {
      const at = `${field}.chunks[${index}]`;
      if (chunk.case !== 'encodedText') throw unsupported(at, chunk.case ?? 'nothing');
      return int32sOf(chunk.value.tokens, `${at}.tokens`);
    }),
    field,
  );
}

function joined(parts: readonly Int32Array[], field: string): Int32Array {
  const tokens = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    tokens.set(part, offset);
    offset += part.length;
  }
  if (tokens.length === 0) throw complaint({ field, expected: 'at least one token', got: 'none' });
  return tokens;
}

function unsupported(field: string, got: string) {
  return complaint({
    field,
    expected: 'encoded_text',
    got,
    remedy: 'the models of this server read text only: leave images and audio out',
  });
}
