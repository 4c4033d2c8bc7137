/** The registry over our own routes: everything that a version is, which the published API has no members for. */
import {
  type ApprovalStatus,
  approvalStatuses,
  complaint,
  type RegisteredVersion,
  type VersionChange,
  type VersionFile,
  type VersionGroup,
  type VersionKind,
  versionKinds,
  versionLimits,
} from '@loopwright/protocol';
import { describeValue, integerAt, numberAt, objectAt, optional, refuseOtherKeys, stringAt } from '../checks.js';

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

/** @throws `invalid_argument` naming the parameter */
export function decodeVersionQuery(query: Readonly<Record<string, string>>): VersionQuery {
  refuseOtherKeys(query, queryKeys, 'query');
  const text = (key: string, max: number) => optional(query, key, 'query', (value, at) => stringAt(value, at, { max }));
  const limit = optional(query, 'limit', 'query', (value, at) =>
    integerAt(/^\d{1,5}$/.test(String(value)) ? Number(value) : value, at, { min: 1, max: 1000 }),
  );
  return given({
    group: text('group', 2048),
    kind: optional(query, 'kind', 'query', (value, at) => oneOf(value, versionKinds, at)),
    approval: optional(query, 'approval', 'query', (value, at) => oneOf(value, approvalStatuses, at)),
    session: text('session', 256),
    tag: text('tag', versionLimits.tagKey + versionLimits.tagValue + 1),
    ended: optional(query, 'ended', 'query', (value, at) => oneOf(value, ['true', 'false'], at) === 'true'),
    limit,
    after: text('after', 4096),
  });
}

/** The part named by a query; all files without one. @throws `invalid_argument` */
export function decodePart(value: string | undefined): VersionPart {
  return value === undefined ? 'all' : oneOf(value, versionParts, 'part');
}

/** @throws `invalid_argument` naming the field */
export function decodeVersionChange(body: unknown): VersionChange {
  const change = objectAt(body, 'body');
  refuseOtherKeys(change, ['description', 'approval', 'tags', 'metrics', 'expiresAtMs'], 'body');
  const expiresAtMs = change.expiresAtMs;
  return given({
    description: optional(change, 'description', 'body', descriptionAt),
    approval: optional(change, 'approval', 'body', approvalAt),
    tags: optional(change, 'tags', 'body', tagsAt),
    metrics: optional(change, 'metrics', 'body', metricsAt),
    // Null says something here: it keeps the version for good.
    expiresAtMs:
      expiresAtMs === undefined || expiresAtMs === null
        ? expiresAtMs
        : integerAt(expiresAtMs, 'body.expiresAtMs', { min: 0, max: Number.MAX_SAFE_INTEGER }),
  });
}

/** @throws `invalid_argument` naming the field */
export function decodeGroupChange(body: unknown): GroupChange {
  const change = objectAt(body, 'body');
  refuseOtherKeys(change, ['description', 'tags'], 'body');
  return given({
    description: optional(change, 'description', 'body', descriptionAt),
    tags: optional(change, 'tags', 'body', tagsAt),
  });
}

const descriptionAt = (value: unknown, at: string) => stringAt(value, at, { max: versionLimits.description });
const noteAt = (value: unknown, at: string) => stringAt(value, at, { max: versionLimits.note });

function approvalAt(value: unknown, field: string): NonNullable<VersionChange['approval']> {
  const approval = objectAt(value, field);
  refuseOtherKeys(approval, ['status', 'note'], field);
  return {
    status: oneOf(approval.status, approvalStatuses, `${field}.status`),
    note: optional(approval, 'note', field, noteAt) ?? '',
  };
}

/** As the published API takes them: letters, digits, spaces and `_ . : / = + - @`. */
const tagPattern = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u;

function tagsAt(value: unknown, field: string): Record<string, string | null> {
  const { tagKey, tagValue } = versionLimits;
  const tags = entriesAt(value, { field, max: 2 * versionLimits.tags });
  return Object.fromEntries(
    tags.map(([key, text]) => {
      stringAt(key, `${field} key`, { min: 1, max: tagKey, pattern: tagPattern });
      return [key, text === null ? null : stringAt(text, `${field}.${key}`, { max: tagValue, pattern: tagPattern })];
    }),
  );
}

/** As metrics are called: `group/name`. */
const metricPattern = /^[\w.:@/+=-]+$/;

function metricsAt(value: unknown, field: string): NonNullable<VersionChange['metrics']> {
  const { metrics: max, metricName } = versionLimits;
  return Object.fromEntries(
    entriesAt(value, { field, max }).map(([name, said]) => {
      stringAt(name, `${field} name`, { min: 1, max: metricName, pattern: metricPattern });
      if (said === null) return [name, null];
      const metric = objectAt(said, `${field}.${name}`);
      refuseOtherKeys(metric, ['value', 'note'], `${field}.${name}`);
      const range = { min: -Number.MAX_VALUE, max: Number.MAX_VALUE };
      return [
        name,
        {
          value: numberAt(metric.value, `${field}.${name}.value`, range),
          note: optional(metric, 'note', `${field}.${name}`, noteAt) ?? '',
        },
      ];
    }),
  );
}

function entriesAt(value: unknown, { field, max }: { readonly field: string; readonly max: number }) {
  const entries = Object.entries(objectAt(value, field));
  if (entries.length > max) throw complaint({ field, expected: `at most ${max} entries`, got: `${entries.length}` });
  return entries;
}

function oneOf<T extends string>(value: unknown, names: readonly T[], field: string): T {
  const found = names.find((name) => name === value);
  if (found === undefined)
    throw complaint({ field, expected: `one of ${names.join(', ')}`, got: describeValue(value) });
  return found;
}

/** Without the members that are undefined. */
function given<T extends object>(members: { readonly [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T; // true: the same members, none undefined
}
