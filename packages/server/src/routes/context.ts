/** What travels with a request through the routes. */
import type { Hono } from 'hono';

export interface RequestVariables {
  readonly requestId: string;
  /** Names and ids for the log line; never content. */
  readonly ids: Record<string, string>;
  /** The body, once it was read: signatures are checked over it before a route sees it. */
  readonly body?: Uint8Array;
}

export interface RouteEnv {
  Variables: RequestVariables;
}

export type App = Hono<RouteEnv>;
