/** Request bodies: read within the limits, then parsed. */
import { isUtf8 } from 'node:buffer';
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { parseJson } from '@loopwright/wires/sagemaker';
import type { Context } from 'hono';
import type { Sender } from '../auth/signature.js';
import type { Admission } from '../limits/admission.js';
import { checkJsonShape } from '../limits/json-shape.js';
import { clientGone } from './client-gone.js';
import type { RouteEnv } from './context.js';

/** @throws `payload_too_large`; `invalid_argument` for what is no JSON, or beyond its limits; what reading throws */
export async function readJson(c: Context<RouteEnv>): Promise<unknown> {
  return parseJson(await readJsonText(c));
}

/** As {@link readJson}, for wires that parse it in a way of their own. */
export async function readJsonText(c: Context<RouteEnv>): Promise<string> {
  const bytes = await readBody(c);
  if (!isUtf8(bytes)) throw complaint({ field: 'body', expected: 'UTF-8', got: `${bytes.length} bytes that are not` });
  checkJsonShape(bytes, c.var.admission.limits);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

/**
 * The body as it came; read once, whoever asks first.
 * @throws `payload_too_large` before more than the limit is in memory; `limit_exceeded` without room for it; `request_timeout` and
 * `cancelled` when it does not come to its end
 */
export async function readBody(c: Context<RouteEnv>, sender: Sender = 'proven'): Promise<Uint8Array> {
  const body = c.var.body ?? (await readBytes(c, sender));
  c.set('body', body);
  return body;
}

async function readBytes(c: Context<RouteEnv>, sender: Sender): Promise<Uint8Array> {
  const { admission } = c.var;
  const { bodyBytes, signedBodyBytes } = admission.limits;
  const limit = sender === 'proven' ? bodyBytes : Math.min(bodyBytes, signedBodyBytes);
  const declared = c.req.header('content-length');
  if (Number(declared ?? 0) > limit) throw tooLarge(limit, sender);
  const source = chunksOf(c);
  if (source === undefined) return new Uint8Array(0);
  const share = await admission.room(sender, declared === undefined ? limit : Number(declared), clientGone(c));
  c.set('share', share);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const chunk = await nextChunk(source, admission, size);
      if (chunk === undefined) break;
      size += chunk.byteLength;
      if (size > limit) throw tooLarge(limit, sender);
      chunks.push(chunk);
    }
  } finally {
    source.return?.().catch(() => {}); // lets go of the stream, which what is left of the body may still run through
  }
  share.shrink(size);
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size);
}

type Chunks = AsyncIterator<Uint8Array, unknown>;

/** Of the socket where there is one: a web stream around it costs more than small bodies do. Undefined where no body can come. */
function chunksOf(c: Context<RouteEnv>): Chunks | undefined {
  const { incoming } = c.env ?? {};
  if (incoming !== undefined) {
    const { 'content-length': length, 'transfer-encoding': encoding } = incoming.headers;
    const hasBody = length !== undefined || encoding !== undefined;
    return hasBody ? incoming.iterator({ destroyOnReturn: false }) : undefined;
  }
  return c.req.raw.body?.values({ preventCancel: true });
}

/** Undefined at the end. */
async function nextChunk(source: Chunks, admission: Admission, sizeSoFar: number): Promise<Uint8Array | undefined> {
  const { clock, limits } = admission;
  const { bodyIdleMs } = limits;
  let cancelTimer: () => void = () => {};
  const silence = new Promise<never>((_, reject) => {
    cancelTimer = clock.after(bodyIdleMs, () =>
      reject(
        complaint({
          code: 'request_timeout',
          field: 'body',
          expected: `a byte every ${bodyIdleMs / 1000} s`,
          got: `none after ${sizeSoFar} bytes`,
        }),
      ),
    );
  });
  try {
    const { done, value } = await Promise.race([
      source.next().catch((cause: unknown) => broken(sizeSoFar, cause)),
      silence,
    ]);
    return done === true ? undefined : (value as Uint8Array); // true: streams of bytes, both of them
  } finally {
    cancelTimer();
  }
}

function broken(size: number, cause: unknown): never {
  throw complaint({
    code: 'cancelled',
    field: 'body',
    expected: 'a whole body',
    got: `${size} bytes, before the client went away`,
    cause,
  });
}

function tooLarge(limit: number, sender: Sender): LoopwrightError {
  return complaint({
    code: 'payload_too_large',
    field: 'body',
    expected: `at most ${limit} bytes`,
    got: 'more',
    ...(sender === 'proven' ? {} : { remedy: 'split the batch, or sign the hash of the body (X-Amz-Content-SHA256)' }),
  });
}
