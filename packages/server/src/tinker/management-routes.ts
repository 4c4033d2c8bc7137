/** Routes that list and look after runs, saved versions and sessions: what the REST client and the `tinker` command call. */
import { complaint } from '@loopwright/protocol';
import {
  decodeTtl,
  encodeCheckpoint,
  encodeTrainingRun,
  type JsonObject,
  type SaveKind,
  type SavePath,
  saveKinds,
  texts,
} from '@loopwright/wires/tinker';
import type { Context } from 'hono';
import type { App, RouteEnv } from '../routes/context.js';
import { baseModelName, modelIdOf } from './names.js';
import { tinkerPrefix } from './paths.js';
import { readObject } from './read-object.js';
import type { Part } from './repository.js';
import type { TinkerService } from './service.js';

export function managementRoutes(app: App, tinker: TinkerService): void {
  const { models, saves, sessions, repository, downloads } = tinker;
  const runs = `${tinkerPrefix}/training_runs`;

  const runOf = async (id: string): Promise<JsonObject> => {
    const { session, training, userMetadata } = await models.get(id);
    const saved = await saves.list({ modelId: id });
    return encodeTrainingRun({
      ...{ modelId: id, baseModel: baseModelName(session.spec.baseModel), training, userMetadata },
      isFailed: session.status === 'Failed',
      activeAtMs: session.activeAtMs,
      lastCheckpoint: saved.find(({ path }) => path.kind === 'weights'),
      lastSamplerCheckpoint: saved.find(({ path }) => path.kind === 'sampler_weights'),
    });
  };
  app.get(runs, async (c) => {
    const part = partOf(c, 20);
    const { names, total } = await repository.models(part);
    const ids = names.map(modelIdOf).filter((id) => id !== undefined);
    return c.json({ training_runs: await Promise.all(ids.map(runOf)), cursor: { ...part, total_count: total } });
  });
  app.get(`${runs}/:run`, async (c) => c.json(await runOf(c.req.param('run'))));
  app.get(`${runs}/:run/checkpoints`, async (c) => {
    await models.get(c.req.param('run'));
    return c.json({
      checkpoints: (await saves.list({ modelId: c.req.param('run'), kinds: kindsFor(c) })).map(encodeCheckpoint),
    });
  });
  app.get(`${tinkerPrefix}/checkpoints`, async (c) => {
    const part = partOf(c, 100);
    const filter = { kinds: kindsFor(c) };
    const [page, total] = await Promise.all([saves.list(filter, part), saves.count(filter)]);
    return c.json({ checkpoints: page.map(encodeCheckpoint), cursor: { ...part, total_count: total } });
  });

  const checkpoint = `${runs}/:run/checkpoints/:kind/:name`;
  app.delete(checkpoint, async (c) => {
    await saves.delete(pathAt(c));
    return c.body(null, 204);
  });
  app.post(`${checkpoint}/publish`, async (c) => {
    await saves.publish(pathAt(c), true);
    return c.body(null, 204);
  });
  app.delete(`${checkpoint}/publish`, async (c) => {
    await saves.publish(pathAt(c), false);
    return c.body(null, 204);
  });
  app.put(`${checkpoint}/ttl`, async (c) => {
    await saves.expireAfter(pathAt(c), decodeTtl(await readObject(c)));
    return c.body(null, 204);
  });
  app.get(`${checkpoint}/external_weights_urls`, async (c) => {
    const { urls, expiresAtMs } = await downloads.files((await saves.resolve(pathAt(c))).id, originOf(c));
    return c.json({ urls, expires: new Date(expiresAtMs).toISOString() });
  });
  // SDKs before 0.36 ask for one, the newer ones download file by file.
  app.get(`${checkpoint}/archive`, async (c) => {
    const { url, expiresAtMs } = downloads.archive((await saves.resolve(pathAt(c))).id, originOf(c));
    return c.body(null, 302, { location: url, expires: new Date(expiresAtMs).toUTCString() });
  });

  app.get(`${tinkerPrefix}/sessions`, async (c) => {
    const rows = await repository.sessions(partOf(c, 20));
    return c.json({ sessions: rows.map(({ id }) => id) });
  });
  app.get(`${tinkerPrefix}/sessions/:id`, async (c) => {
    const { id, facts } = await sessions.get(c.req.param('id'));
    const { user_metadata: metadata, display_name: name } = JSON.parse(facts) as JsonObject; // true: written from an object
    const names = await repository.namesOf(id);
    return c.json({
      training_run_ids: names.map(modelIdOf).filter((model) => model !== undefined),
      sampler_ids: (await repository.samplersOf(id)).map((sampler) => sampler.id),
      user_metadata: texts(typeof metadata === 'object' && metadata !== null ? { ...metadata } : {}),
      display_name: typeof name === 'string' ? name : null,
    });
  });
  app.put(`${tinkerPrefix}/sessions/:id/project`, async (c) => {
    const { id, facts } = await sessions.get(c.req.param('id'));
    const { project_id } = await readObject(c);
    await repository.changeSession(id, { facts: { ...JSON.parse(facts), project_id } });
    return c.body(null, 204);
  });
}

/** Clients before 0.28 can't read a listing with a version for download. */
function kindsFor(c: Context<RouteEnv>): readonly SaveKind[] {
  const [, major, minor] = /Tinker\/Python (\d+)\.(\d+)/.exec(c.req.header('user-agent') ?? '') ?? [];
  const isOld = major === '0' && Number(minor) < 28;
  return isOld ? saveKinds.filter((kind) => kind !== 'external_weights') : saveKinds;
}

function pathAt(c: Context<RouteEnv>): SavePath {
  const [run = '', kindText, name = ''] = [c.req.param('run'), c.req.param('kind'), c.req.param('name')];
  const kind = saveKinds.find((one) => one === kindText);
  if (kind !== undefined) return { modelId: run, kind, name };
  throw complaint({
    code: 'unknown_version',
    field: 'checkpoint',
    expected: saveKinds.join(' or '),
    got: 'another kind',
  });
}

/** What a client wrote into the address, which is where it reaches this server. */
function originOf(c: Context<RouteEnv>): string {
  return new URL(c.req.url).origin;
}

function partOf(c: Context<RouteEnv>, defaultLimit: number): Part {
  const read = (name: string, fallback: number, max: number) => {
    const text = c.req.query(name);
    if (text === undefined) return fallback;
    if (/^\d{1,9}$/.test(text)) return Math.min(max, Number(text));
    throw complaint({ field: name, expected: 'a whole number', got: `${text.length} characters` });
  };
  return { limit: read('limit', defaultLimit, 1000), offset: read('offset', 0, 999_999_999) };
}
