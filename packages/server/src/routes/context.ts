/** What travels with a request through the routes. */
import type { HttpBindings } from '@hono/node-server';
import type { Hono } from 'hono';
import type { Admission } from '../limits/admission.js';
import type { BodyShare } from '../limits/body-room.js';

export interface RequestVariables {
  readonly requestId: string;
  readonly admission: Admission;
  /** Names and ids for the log line; never content. */
  readonly ids: Record<string, string>;
  /** The body, once it was read: signatures are checked over it before a route sees it. */
  readonly body?: Uint8Array;
  /** The memory that the body takes. */
  readonly share?: BodyShare;
}

export interface RouteEnv {
  /** Absent where a request came without a socket. */
  Bindings: Partial<HttpBindings>;
  Variables: RequestVariables;
}

export type App = Hono<RouteEnv>;
