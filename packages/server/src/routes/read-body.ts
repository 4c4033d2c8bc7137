/** Request bodies: read up to a limit, then parsed. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { parseJson } from '@loopwright/wires/sagemaker';

/** Bytes of a request body at most. The Python SDK splits batches at 10 MB. */
export const maxBodyBytes: number = 64 * 1024 * 1024;

/** @throws `payload_too_large` before more than the limit is in memory; `invalid_argument` for what is no JSON */
export async function readJson(request: Request, limit: number = maxBodyBytes): Promise<unknown> {
  if (Number(request.headers.get('content-length') ?? 0) > limit) throw tooLarge(limit);
  if (request.body === null) return parseJson('');
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body) {
    size += chunk.byteLength;
    if (size > limit) throw tooLarge(limit);
    chunks.push(chunk);
  }
  return parseJson(Buffer.concat(chunks).toString('utf8'));
}

function tooLarge(limit: number): LoopwrightError {
  return complaint({ code: 'payload_too_large', field: 'body', expected: `at most ${limit} bytes`, got: 'more' });
}
