/** The registry over our own routes: listed, described, changed, deleted, and given out as files. */
import { Readable } from 'node:stream';
import { complaint, type RegisteredVersion, type VersionId } from '@loopwright/protocol';
import {
  type GroupList,
  registryPaths,
  type VersionDetail,
  type VersionPage,
  type VersionQuery,
} from '@loopwright/wires/loopwright';
import {
  decodeGroupChange,
  decodePart,
  decodeVersionChange,
  decodeVersionQuery,
} from '@loopwright/wires/loopwright/server';
import { groupNameOf } from '@loopwright/wires/sagemaker';
import type { Context } from 'hono';
import type { BlobStore } from '../blobs/blob-store.js';
import { checkedApproval } from '../registry/approval.js';
import { openArchive } from '../registry/archive.js';
import type { VersionFilter } from '../registry/list-versions.js';
import { modelCard } from '../registry/model-card.js';
import { outgoingFiles } from '../registry/parts.js';
import type { Registry } from '../registry/registry.js';
import { type DescribedVersion, undecided, type Version } from '../registry/version.js';
import type { App, RouteEnv } from './context.js';
import { readJson } from './read-body.js';
import { arns } from './runtime-plane.js';

export interface RegistryRouteOptions {
  readonly registry: Registry;
  readonly blobs: BlobStore;
  readonly workspaceId: string;
}

/** Versions of a page where the request names no number. */
const defaultPage = 100;

export function registryRoutes(app: App, { registry, blobs, workspaceId }: RegistryRouteOptions): void {
  const detail = async (version: DescribedVersion): Promise<VersionDetail> => {
    const files = await registry.files(workspaceId, version.id);
    return {
      ...named(version),
      metrics: version.metrics,
      files: files.map(({ path, hash, sizeBytes }) => ({ path, sha256: hash, sizeBytes })),
    };
  };
  /** Of a version whose files are there. */
  const available = async (id: VersionId): Promise<DescribedVersion> => {
    await registry.get(workspaceId, id);
    return registry.describe(workspaceId, id);
  };

  app.get(registryPaths.groups, async (c) => {
    const answer: GroupList = { groups: await registry.groups.list(workspaceId) };
    return c.json(answer);
  });
  app.patch(registryPaths.group, async (c) =>
    c.json(await registry.groups.change(workspaceId, c.req.param('group'), decodeGroupChange(await readJson(c)))),
  );

  app.get(registryPaths.versions, async (c) => {
    const query = decodeVersionQuery(c.req.query());
    const { limit = defaultPage, after } = query;
    const page = { limit, ...(after === undefined ? {} : { after }) };
    const { items, next } = await registry.list(workspaceId, filterOf(query), page);
    const answer: VersionPage = { versions: items.map(named), ...(next === undefined ? {} : { next }) };
    return c.json(answer);
  });

  app.get(registryPaths.version, async (c) => c.json(await detail(await registry.describe(workspaceId, idOf(c)))));
  app.patch(registryPaths.version, async (c) => {
    const asked = decodeVersionChange(await readJson(c));
    const { metrics } = await available(idOf(c));
    const change = checkedApproval(asked, metrics);
    return c.json(await detail(await registry.change(workspaceId, idOf(c), change)));
  });
  app.delete(registryPaths.version, async (c) => {
    await registry.delete(workspaceId, idOf(c));
    return c.json({});
  });

  app.get(registryPaths.card, async (c) =>
    c.body(modelCard(await available(idOf(c))), 200, { 'content-type': 'text/markdown; charset=utf-8' }),
  );

  app.get(registryPaths.file, async (c) => {
    const { id } = await available(idOf(c));
    const path = c.req.param('path');
    const file = (await registry.files(workspaceId, id)).find((known) => known.path === path);
    if (file === undefined) {
      throw complaint({
        code: 'not_found',
        field: 'path',
        expected: 'a file of this version',
        got: `a path of ${path.length} characters`,
        remedy: 'the description of the version lists its files',
      });
    }
    const stream = await blobs.read({ workspaceId, hash: file.hash });
    return sent(stream, {
      'content-type': 'application/octet-stream',
      'content-length': String(file.sizeBytes),
      etag: `"${file.hash}"`,
    });
  });

  app.get(registryPaths.archive, async (c) => {
    const version = await available(idOf(c));
    const files = outgoingFiles(await registry.files(workspaceId, version.id), decodePart(c.req.query()));
    const texts = { 'README.md': modelCard(version) };
    const { stream, sizeBytes } = await openArchive({
      ...{ blobs, workspaceId, files, texts },
      atMs: version.createdAtMs,
    });
    const name = `${version.groupName.replace(/[^\w.-]/g, '_')}-${version.number}.zip`;
    return sent(stream, {
      'content-type': 'application/zip',
      'content-disposition': `attachment; filename="${name}"`,
      ...(sizeBytes < 0 ? {} : { 'content-length': String(sizeBytes) }),
    });
  });
}

function sent(stream: Readable, headers: Record<string, string>): Response {
  // true: the same standard stream, whose types come from two places
  return new Response(Readable.toWeb(stream) as unknown as ReadableStream<Uint8Array>, { headers });
}

/** The id of the version in the path. */
function idOf(c: Context<RouteEnv>): VersionId {
  const { group = '', number = '' } = c.req.param() as { group?: string; number?: string }; // true: members of these routes' paths
  if (!/^[1-9]\d{0,8}$/.test(number))
    throw complaint({ field: 'number', expected: 'the number of a version', got: `${number.length} characters` });
  return `${group}/${number}`;
}

function filterOf({ group, kind, approval, session, tag, ended }: VersionQuery): VersionFilter {
  return {
    ...(group === undefined ? {} : { groupName: groupNameOf(group) }),
    ...(kind === undefined ? {} : { kind }),
    ...(approval === undefined ? {} : { approval: { status: approval, undecided } }),
    ...(session === undefined ? {} : { sessionName: session }),
    ...(tag === undefined ? {} : { tag: tagOf(tag) }),
    ...(ended === undefined ? {} : { includeEnded: ended }),
  };
}

/** `key`, or `key=value` at the first sign of equality. */
function tagOf(text: string): { key: string; value?: string } {
  const at = text.indexOf('=');
  return at < 0 ? { key: text } : { key: text.slice(0, at), value: text.slice(at + 1) };
}

/** With ARNs for ids, as they are called outside. */
function named({ workspaceId: _, ...version }: Version): Omit<RegisteredVersion, 'metrics'> {
  const { id, lineage } = version;
  const parent = lineage.parent === null ? null : arns.toArn(lineage.parent);
  return { ...version, id: arns.toArn(id), lineage: { ...lineage, parent } };
}
