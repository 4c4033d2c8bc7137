/** The registry over our own routes: everything that a version is, which the published API has no members for. */
import type { ApprovalStatus, RegisteredVersion, VersionFile, VersionGroup, VersionKind } from '@loopwright/protocol';

export const registryPaths = {
  groups: '/v1/registry/groups',
  group: '/v1/registry/groups/:group',
  versions: '/v1/registry/versions',
  version: '/v1/registry/versions/:group/:number',
  file: '/v1/registry/versions/:group/:number/files/:path{.+}',
  archive: '/v1/registry/versions/:group/:number/archive',
  card: '/v1/registry/versions/:group/:number/card',
} as const;

export function groupPath(group: string): string {
  return `${registryPaths.groups}/${encodeURIComponent(group)}`;
}

/** Of a version by its id, `group/number`; and below it. */
export function versionPath(id: string): string {
  const slash = id.lastIndexOf('/');
  return `${registryPaths.versions}/${encodeURIComponent(id.slice(0, slash))}/${id.slice(slash + 1)}`;
}

export function versionFilePath(id: string, path: string): string {
  return `${versionPath(id)}/files/${path.split('/').map(encodeURIComponent).join('/')}`;
}

/** Which files of a version: all of them, the adapter alone, or the merged model as a directory of its own. */
export const versionParts = ['all', 'adapter', 'merged'] as const;
export type VersionPart = (typeof versionParts)[number];

export interface VersionQuery {
  readonly group?: string;
  readonly kind?: VersionKind;
  readonly approval?: ApprovalStatus;
  readonly session?: string;
  /** `key` or `key=value`. */
  readonly tag?: string;
  /** Also what has expired or was deleted. */
  readonly ended?: boolean;
  /** From 1 to 1000; default 100. */
  readonly limit?: number;
  /** The `next` of the page before. */
  readonly after?: string;
}

/** A page, newest first. */
export interface VersionPage {
  readonly versions: readonly Omit<RegisteredVersion, 'metrics'>[];
  readonly next?: string;
}

/** A version with its files. */
export interface VersionDetail extends RegisteredVersion {
  readonly files: readonly VersionFile[];
}

export interface GroupChange {
  readonly description?: string;
  /** Null takes a tag away. */
  readonly tags?: Readonly<Record<string, string | null>>;
}

export interface GroupList {
  readonly groups: readonly VersionGroup[];
}

const queryKeys = ['group', 'kind', 'approval', 'session', 'tag', 'ended', 'limit', 'after'] as const;

export function encodeVersionQuery(query: VersionQuery): string {
  const given = queryKeys.flatMap((key): [string, string][] =>
    query[key] === undefined ? [] : [[key, String(query[key])]],
  );
  return new URLSearchParams(given).toString();
}
