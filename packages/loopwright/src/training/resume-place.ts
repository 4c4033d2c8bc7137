/** Where a run that goes on has its checkpoints: with the server, or in the data directory, where its session was. */
import type { RunRecord } from '@loopwright/loops/node';
import { readSettings } from '../config.js';
import type { ConnectOptions, ServiceConnection } from '../connect.js';

/** Of a session: what tells this server from others. */
export function placeOf(service: ServiceConnection): string {
  return service.dataDir ?? service.baseUrl;
}

/** To that place, unless the caller or LOOPWRIGHT_URL names another. */
export function connectionTo(session: RunRecord['session'], given: ConnectOptions): ConnectOptions {
  const isNamed = given.url !== undefined || given.dataDir !== undefined || readSettings().url !== undefined;
  if (session === undefined || isNamed) return given;
  const { url: _url, dataDir: _dataDir, ...rest } = given;
  return /^https?:/.test(session.place) ? { ...rest, url: session.place } : { ...rest, dataDir: session.place };
}
