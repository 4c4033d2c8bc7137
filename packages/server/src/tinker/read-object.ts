/** Bodies of this wire that are JSON objects. */
import { complaint } from '@loopwright/protocol';
import { type JsonObject, parseExactJson } from '@loopwright/wires/tinker';
import type { Context } from 'hono';
import type { RouteEnv } from '../routes/context.js';
import { readBody, readJsonText } from '../routes/read-body.js';

/** No body is an empty object. @throws `invalid_argument`, `payload_too_large` */
export async function readObject(c: Context<RouteEnv>): Promise<JsonObject> {
  if ((await readBody(c)).byteLength === 0) return {};
  const body = parseExactJson(await readJsonText(c));
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as JsonObject; // true: just seen
  throw complaint({ field: 'body', expected: 'an object', got: Array.isArray(body) ? 'an array' : typeof body });
}
