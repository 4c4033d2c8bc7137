/** Whether the client of a request still waits for its answer. */
import type { Context } from 'hono';
import type { RouteEnv } from './context.js';

/** Fires when the connection closes before the answer is whole. (The signal of the request itself costs a `Request` of the whole kind.) */
export function clientGone(c: Context<RouteEnv>): AbortSignal {
  const { outgoing } = c.env ?? {};
  if (outgoing === undefined) return c.req.raw.signal;
  const gone = new AbortController();
  const close = () => {
    if (!outgoing.writableFinished) gone.abort(new DOMException('the client went away', 'AbortError'));
  };
  if (outgoing.closed) close();
  else outgoing.once('close', close);
  return gone.signal;
}
