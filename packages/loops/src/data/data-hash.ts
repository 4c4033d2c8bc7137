/** Hashes of the files of a data set, as a run records them. */
import { complaint } from '@loopwright/protocol';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { cancelled, throwIfCancelled } from './cancelled.js';
import type { BytesHash, ReadSourceOptions, RowSource } from './source.js';

export interface DataHash {
  /** Of one file, its own. Of several, that of their hashes, each with a newline, in order: names don't count. */
  readonly sha256: string;
  readonly files: readonly (BytesHash & { readonly file: string })[];
}

/** Reads every byte once. @throws `not_found`, `cancelled`; `data_invalid` for a source without bytes */
export async function hashSources(
  sources: readonly RowSource[],
  { signal }: { readonly signal?: AbortSignal | undefined },
): Promise<DataHash> {
  const files: (BytesHash & { readonly file: string })[] = [];
  for (const { file, hash } of sources) {
    throwIfCancelled(signal);
    if (hash === undefined) {
      throw complaint({
        code: 'data_invalid',
        field: file,
        expected: 'a source that can be hashed',
        got: 'one of rows alone',
      });
    }
    try {
      files.push({ file, ...(await hash({ signal })) });
    } catch (error) {
      throw signal?.aborted === true ? cancelled(signal) : error;
    }
  }
  const [only] = files;
  const text = files.map((file) => `${file.sha256}\n`).join('');
  const isOne = files.length === 1 && only !== undefined;
  return { sha256: isOne ? only.sha256 : bytesToHex(sha256(utf8ToBytes(text))), files };
}

/** In JavaScript, for bytes that come from anywhere. */
export async function hashBytes(bytes: AsyncIterable<Uint8Array>, { signal }: ReadSourceOptions): Promise<BytesHash> {
  const hash = sha256.create();
  let sizeBytes = 0;
  for await (const chunk of bytes) {
    throwIfCancelled(signal);
    hash.update(chunk);
    sizeBytes += chunk.byteLength;
  }
  return { sha256: bytesToHex(hash.digest()), sizeBytes };
}
