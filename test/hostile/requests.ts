/** The recorded requests, and how they are made to fit a server. */
import { readFile } from 'node:fs/promises';
import type { RawServer } from '../support/raw-server.js';
import { passBody, sampleBody } from '../support/raw-server.js';

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** What stands in the recording for a name or id of the server. */
export const placeholders = {
  session: 'recorded-session',
  operations: '{training-id}',
  'sampling-operations': '{sampling-id}',
} as const;

export async function recordedRequests(): Promise<RecordedRequest[]> {
  return JSON.parse(await readFile(new URL('requests.json', import.meta.url), 'utf8')) as RecordedRequest[]; // true: record.ts wrote it
}

/** A route that nobody was recorded at, asked for in its simplest form. */
export function simplestRequest({ method, path }: { readonly method: string; readonly path: string }): RecordedRequest {
  const filled = path
    .replace(':name', placeholders.session)
    .replace(/(sampling-)?operations\/:operationId/, (_, sampling?: string) =>
      sampling === undefined
        ? `operations/${placeholders.operations}`
        : `sampling-operations/${placeholders['sampling-operations']}`,
    )
    .replace(/:\w+(\{[^}]*\})?/g, 'tiny');
  return {
    method,
    path: filled,
    headers: { 'content-type': 'application/json' },
    ...(method === 'GET' ? {} : { body: {} }),
  };
}

/** Whether a recorded request goes to that route. */
export function isAt(request: RecordedRequest, route: { readonly method: string; readonly path: string }): boolean {
  const pattern = route.path.replace(/:\w+\{([^}]*)\}/g, '$1').replace(/:\w+/g, '[^/]+');
  return request.method === route.method && new RegExp(`^${pattern}$`).test(request.path.split('?')[0]!);
}

export type Fill = <T>(value: T) => T;

/** Makes a session with an operation of each kind, and says how recorded requests are made to mean it. */
export async function prepareSession(server: RawServer, name: string): Promise<Fill> {
  await server.createSession(name, 'tiny');
  const training = await server.submit(name, 'operations', passBody(1));
  const sampling = await server.submit(name, 'sampling-operations', sampleBody());
  const ids = {
    [placeholders.session]: name,
    [placeholders.operations]: String(training.body.operationId),
    [placeholders['sampling-operations']]: String(sampling.body.operationId),
  };
  return (value) => {
    let text = JSON.stringify(value);
    for (const [from, to] of Object.entries(ids)) text = text.replaceAll(from, to);
    return JSON.parse(text);
  };
}
