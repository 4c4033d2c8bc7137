/** The HTTP application: every route, and around them request ids, keys, the log line and errors in the shape of their plane. */
import { randomUUID } from 'node:crypto';
import { asLoopwrightError, type LoopwrightError } from '@loopwright/protocol';
import type { WireName } from '@loopwright/wires';
import { healthPath, modelsPath, openApiPath, tracePath, usagePath } from '@loopwright/wires/loopwright';
import { decodeUsageQuery, openApiDocument } from '@loopwright/wires/loopwright/server';
import { encodeModel, encodeOpenAIError, isOpenAIPath } from '@loopwright/wires/openai';
import { encodeError, headers, type Plane } from '@loopwright/wires/sagemaker';
import { encodeError as encodeTinkerError } from '@loopwright/wires/tinker';
import { type Context, Hono } from 'hono';
import type { Logger } from 'pino';
import type { Authorizer } from '../auth/authorize.js';
import type { Sender } from '../auth/signature.js';
import type { BlobStore } from '../blobs/blob-store.js';
import { AnswerService } from '../chat/answer-service.js';
import type { EngineHost } from '../engines/engine-host.js';
import type { Admission } from '../limits/admission.js';
import type { ModelRegistry } from '../models/model-registry.js';
import { ModelTargets } from '../openai/model-targets.js';
import { ServingSessions } from '../sessions/serving-sessions.js';
import { downloadPath, tinkerPrefix } from '../tinker/paths.js';
import { tinkerRoutes } from '../tinker/routes.js';
import type { TinkerService } from '../tinker/service.js';
import { chatRoutes } from './chat.js';
import type { App, RouteEnv } from './context.js';
import { type ControlPlaneOptions, controlPlane } from './control-plane.js';
import { modelFiles } from './model-files.js';
import { noRoute } from './no-route.js';
import { openaiRoutes } from './openai.js';
import { readBody } from './read-body.js';
import { registryRoutes } from './registry.js';
import { arns, runtimePlane } from './runtime-plane.js';

export interface AppOptions extends ControlPlaneOptions {
  readonly engines: EngineHost;
  readonly models: ModelRegistry;
  readonly authorizer: Authorizer;
  readonly admission: Admission;
  readonly blobs: BlobStore;
  readonly logger: Logger;
  readonly wires: readonly WireName[];
  readonly tinker: TinkerService;
  readonly saveTtlSeconds: number | null;
  readonly version: string;
}

export function createApp(options: AppOptions): App {
  const { authorizer, admission, logger, service, engines, models, wires, version, startedAtMs } = options;
  const app: App = new Hono<RouteEnv>();

  app.use(async (c, next) => {
    const started = performance.now();
    const asked = c.req.header('x-request-id');
    const requestId = asked !== undefined && /^[\w-]{1,64}$/.test(asked) ? asked : randomUUID();
    const ids: Record<string, string> = {};
    c.set('requestId', requestId);
    c.set('ids', ids);
    c.set('admission', admission);
    // On the socket's side, where there is one: setting them on an answer makes a `Response` of the whole kind of it.
    const { outgoing } = c.env ?? {};
    if (outgoing !== undefined) for (const [name, value] of headersOf(requestId)) outgoing.setHeader(name, value);
    await next();
    if (outgoing === undefined) for (const [name, value] of headersOf(requestId)) c.res.headers.set(name, value);
    const session = c.req.path.split('/training-sessions/')[1]?.split('/')[0];
    const line = {
      requestId,
      method: c.req.method,
      route: c.req.routePath,
      status: c.res.status,
      ms: Math.round((performance.now() - started) * 10) / 10,
      ...(session === undefined ? {} : { session: session.slice(0, 64) }),
      ...ids,
    };
    if (c.res.status >= 500) logger.error(line, 'request');
    else logger.info(line, 'request');
  });

  const signed = (c: Context<RouteEnv>) => ({
    method: c.req.method,
    url: c.req.url,
    headers: c.req.header(),
    body: (sender: Sender) => readBody(c, sender),
  });
  app.use(async (c, next) => {
    const leave = admission.enter();
    try {
      await next();
    } finally {
      // What was in the body is an operation by now; an answer may go on for minutes.
      c.var.share?.release();
      const { outgoing } = c.env ?? {};
      if (outgoing === undefined || outgoing.closed) leave();
      else outgoing.once('close', leave);
    }
  });

  app.use(async (c, next) => {
    if (c.req.path !== healthPath && c.req.path !== downloadPath) await authorizer.check(signed(c));
    await next();
  });

  app.get(healthPath, async (c) => {
    const base = { status: 'ok', version, uptimeSeconds: Math.round((Date.now() - startedAtMs) / 1000) };
    try {
      await authorizer.check(signed(c));
    } catch {
      return c.json(base);
    }
    return c.json({ ...base, node: process.versions.node, engines: engines.states() });
  });

  const answers = new AnswerService({ service, models, isClosing: () => admission.isClosed });
  const targets = new ModelTargets({
    service,
    serving: new ServingSessions(service),
    registry: options.registry,
    models,
    workspaceId: options.workspaceId,
    versionOfArn: (arn) => arns.toVersion(arn, 'body.model'),
  });

  // Cards of the base models, in a word of ours; and all that answers, as OpenAI's clients read it.
  app.get(modelsPath, async (c) => {
    const cards = await Promise.all(
      (await models.list()).map(async ({ id }) => {
        try {
          const { directory: _, ...card } = await models.card(id);
          return { ...card, id };
        } catch (error) {
          return { id, error: asLoopwrightError(error).toJSON() };
        }
      }),
    );
    const data = (await targets.list()).map(encodeModel);
    return c.json({ object: 'list', data, models: cards });
  });

  app.get(usagePath, async (c) => c.json({ usage: await service.usageSummary(decodeUsageQuery(c.req.query())) }));

  app.get(tracePath, async (c) => c.json({ operations: await service.trace(c.req.param('name')) }));

  const document = openApiDocument({ version });
  app.get(openApiPath, (c) => c.json(document));

  if (wires.includes('sagemaker')) {
    controlPlane(app, options);
    runtimePlane(app, options);
    chatRoutes(app, answers);
  }
  if (wires.includes('openai')) openaiRoutes(app, { answers, targets });
  if (wires.includes('tinker')) tinkerRoutes(app, options.tinker);
  registryRoutes(app, options);
  modelFiles(app, options.hub);

  app.notFound((c) => {
    const error = noRoute({ method: c.req.method, path: c.req.path, wires });
    return respond(error, c.req.path, c.var.requestId);
  });

  app.onError((error, c) => {
    const known = asLoopwrightError(error);
    if (known.code === 'internal') {
      // The stack has no content of requests; the message of a foreign error might, and stays out of the log.
      logger.error({ requestId: c.var.requestId, stack: error.stack?.split('\n').slice(1, 6) }, 'internal error');
    }
    c.var.ids.code = known.code;
    return respond(known, c.req.path, c.var.requestId);
  });
  return app;
}

/** Of every answer. */
function headersOf(requestId: string): readonly (readonly [string, string])[] {
  return [
    ['x-request-id', requestId],
    [headers.requestId, requestId],
    // What a model wrote is in answers as JSON: no browser is to take it for a page.
    ['x-content-type-options', 'nosniff'],
  ];
}

function planeOf(path: string): Plane | undefined {
  if (path === '/') return 'control';
  return path.startsWith('/v1/training-sessions/') || path.startsWith('/training-sessions/') ? 'runtime' : undefined;
}

function respond(error: LoopwrightError, path: string, requestId: string): Response {
  if (isOpenAIPath(path)) {
    const { status, headers: extra, body } = encodeOpenAIError(error, { requestId });
    return new Response(JSON.stringify(body), { status, headers: { ...extra } });
  }
  if (path.startsWith(`${tinkerPrefix}/`)) {
    const { status, headers: own, body } = encodeTinkerError(error, { requestId });
    return new Response(JSON.stringify(body), { status, headers: { ...own } });
  }
  const plane = planeOf(path);
  if (plane === undefined) {
    const { retryAfterMs } = error.details;
    const seconds = Math.max(1, typeof retryAfterMs === 'number' ? Math.ceil(retryAfterMs / 1000) : 1);
    return Response.json(
      {
        ...error.toJSON(),
        request_id: requestId,
        ...(path === modelsPath ? encodeOpenAIError(error, { requestId }).body : {}),
      },
      {
        status: error.status,
        headers: error.status === 429 || error.status === 503 ? { 'retry-after': String(seconds) } : {},
      },
    );
  }
  const encoded = encodeError(error, { plane, requestId });
  return new Response(JSON.stringify(encoded.body), { status: encoded.status, headers: { ...encoded.headers } });
}
