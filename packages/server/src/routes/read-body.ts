/** Request bodies: read up to a limit, then parsed. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { parseJson } from '@loopwright/wires/sagemaker';
import type { Context } from 'hono';
import type { RouteEnv } from './context.js';

/** Bytes of a request body at most. The Python SDK splits batches at 10 MB. */
export const maxBodyBytes: number = 64 * 1024 * 1024;

/** @throws `payload_too_large`; `invalid_argument` for what is no JSON */
export async function readJson(c: Context<RouteEnv>): Promise<unknown> {
  return parseJson(Buffer.from(await readBody(c)).toString('utf8'));
}

/** The body as it came; read once, whoever asks first. @throws `payload_too_large` before more than the limit is in memory */
export async function readBody(c: Context<RouteEnv>): Promise<Uint8Array> {
  const body = c.get('body') ?? (await readBytes(c.req.raw));
  c.set('body', body);
  return body;
}

async function readBytes(request: Request): Promise<Uint8Array> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBodyBytes) throw tooLarge(maxBodyBytes);
  if (request.body === null) return new Uint8Array(0);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body) {
    size += chunk.byteLength;
    if (size > maxBodyBytes) throw tooLarge(maxBodyBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLarge(limit: number): LoopwrightError {
  return complaint({ code: 'payload_too_large', field: 'body', expected: `at most ${limit} bytes`, got: 'more' });
}
