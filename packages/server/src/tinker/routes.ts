/** Routes of the Tinker wire, under /api/v1: those of clients and their sessions here, the others beside. */
import { asLoopwrightError, complaint } from '@loopwright/protocol';
import { clientConfig, dynamicConfig, encodeError } from '@loopwright/wires/tinker';
import { clientGone } from '../routes/client-gone.js';
import type { App } from '../routes/context.js';
import { managementRoutes } from './management-routes.js';
import { downloadPath, tinkerPrefix } from './paths.js';
import { readObject } from './read-object.js';
import { refusedRoutes } from './refused-routes.js';
import { samplingRoutes } from './sampling-routes.js';
import type { TinkerService } from './service.js';
import { trainingRoutes } from './training-routes.js';

/** What clients of this wire take for the end of waiting, by its status of 410. */
const goneRequest = encodeError(
  complaint({
    code: 'unknown_operation',
    field: 'request_id',
    expected: 'the id of a request whose result is still here',
    got: 'another',
  }),
).body;
const goneSession = encodeError(
  complaint({ code: 'session_not_active', field: 'session_id', expected: 'a live session', got: 'one that has ended' }),
).body;

export function tinkerRoutes(app: App, tinker: TinkerService): void {
  const { sessions, futures } = tinker;
  const at = (path: string) => `${tinkerPrefix}/${path}`;

  app.get(at('healthz'), (c) => c.json({ status: 'ok' }));
  app.get(at('get_server_capabilities'), async (c) => c.json({ supported_models: await tinker.capabilities() }));
  app.post(at('client/config'), (c) => c.json(clientConfig));
  app.post(at('client/dynamic_config'), (c) => c.json(dynamicConfig));
  app.post(at('telemetry'), (c) => c.json({ status: 'accepted' })); // nothing of it is kept: it may hold keys

  app.post(at('create_session'), async (c) => {
    const { tags, user_metadata, project_id, display_name, sdk_version } = await readObject(c);
    const facts = { tags, user_metadata, project_id, display_name, sdk_version };
    return c.json({ type: 'create_session', session_id: await sessions.create(facts) });
  });
  app.post(at('session_heartbeat'), async (c) => {
    const lives = await sessions.heartbeat((await readObject(c)).session_id);
    return lives ? c.json({ type: 'session_heartbeat' }) : c.json(goneSession, 410);
  });
  app.post(at('sessions/:id/finish'), async (c) => {
    await sessions.finish(c.req.param('id'), await readObject(c));
    return c.json({});
  });

  app.post(at('retrieve_future'), async (c) => {
    const { request_id: id } = await readObject(c);
    const proto = (c.req.header('accept') ?? '').includes('x-protobuf');
    if (typeof id === 'string') c.var.ids.operationId = id.slice(0, 64);
    const body = await futures.retrieve(String(id), { proto, signal: clientGone(c) }).catch((error: unknown) => {
      if (asLoopwrightError(error).code === 'unknown_operation') return undefined;
      throw error;
    });
    if (body === undefined) return c.json(goneRequest, 410);
    if (!(body instanceof Uint8Array)) return c.json(body);
    return c.body(new Uint8Array(body), 200, { 'content-type': 'application/x-protobuf' });
  });

  refusedRoutes(app); // before the routes that have a place for any name
  trainingRoutes(app, tinker);
  samplingRoutes(app, tinker);
  managementRoutes(app, tinker);
  app.get(downloadPath, async (c) => {
    const { stream, sizeBytes, type } = await tinker.downloads.read(c.req.query());
    return c.body(stream, 200, { 'content-type': type, 'content-length': String(sizeBytes) });
  });
}
