/** Requests of our own routes, for servers: what is checked, and what the OpenAPI document says of it. */
import {
  approvalStatuses,
  usageGroupings,
  type VersionChange,
  versionKinds,
  versionLimits,
} from '@loopwright/protocol';
import * as z from 'zod';
import { schemaRefusal } from '../schema-refusal.js';
import { type GroupChange, type VersionPart, type VersionQuery, versionParts } from './registry.js';
import type { UsageQuery } from './usage.js';

/** A whole number in a query, written in digits alone. */
const numberInQuery = (digits: number, { min, max }: { readonly min: number; readonly max: number }) =>
  z.preprocess(
    (text) => (typeof text === 'string' && text.length <= digits && /^\d+$/.test(text) ? Number(text) : text),
    z.int().min(min).max(max),
  );
const timeInQuery = numberInQuery(16, { min: 0, max: Number.MAX_SAFE_INTEGER });

export const usageQuery = z.strictObject({
  by: z.enum(usageGroupings).default('session').describe('What a line sums up.'),
  from: timeInQuery.optional().describe('Operations that ended at or after this, in ms since 1970.'),
  to: timeInQuery.optional().describe('Operations that ended before this, in ms since 1970.'),
});

export const versionQuery = z.strictObject({
  group: z.string().max(2048).optional().describe('Name or ARN of a group.'),
  kind: z.enum(versionKinds).optional(),
  approval: z.enum(approvalStatuses).optional(),
  session: z.string().max(256).optional().describe('Name of the session that saved it.'),
  tag: z
    .string()
    .max(versionLimits.tagKey + versionLimits.tagValue + 1)
    .optional()
    .describe('`key`, or `key=value`.'),
  ended: z.enum(['true', 'false']).optional().describe('Also what has expired or was deleted.'),
  limit: numberInQuery(5, { min: 1, max: 1000 }).optional().describe('Versions of a page; 100 by default.'),
  after: z.string().max(4096).optional().describe('The `next` of the page before.'),
});

export const archiveQuery = z.looseObject({
  part: z
    .enum(versionParts)
    .default('all')
    .describe('All files, the adapter alone, or the merged model as a directory of its own.'),
});

/** As the published API takes them: letters, digits, spaces and `_ . : / = + - @`. */
const tagPattern = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u;
/** As metrics are called: `group/name`. */
const metricPattern = /^[\w.:@/+=-]+$/;
const limits = versionLimits;
const text = (pattern: RegExp, { min = 0, max }: { readonly min?: number; readonly max: number }) =>
  z.string().min(min, { abort: true }).max(max, { abort: true }).regex(pattern);
const description = z.string().max(limits.description);
const note = z.string().max(limits.note);
/** Entries by name, so many at most; null takes one away. */
function entries<V extends z.ZodType>(key: z.ZodString, value: V, max: number) {
  const few = z
    .record(key, value.nullable())
    .refine((all) => Object.keys(all).length <= max, `at most ${max} entries`)
    .meta({ maxProperties: max });
  // The schema library leaves this key out without a word.
  return z.preprocess((all, { issues }) => {
    if (typeof all === 'object' && all !== null && Object.hasOwn(all, '__proto__'))
      issues.push({ code: 'custom', message: 'no entry of the name __proto__', input: all });
    return all;
  }, few);
}
const tags = entries(
  text(tagPattern, { min: 1, max: limits.tagKey }),
  text(tagPattern, { max: limits.tagValue }),
  2 * limits.tags,
);
const metric = z.strictObject({ value: z.number(), note: note.nullish() });
const metrics = entries(text(metricPattern, { min: 1, max: limits.metricName }), metric, limits.metrics);

/** What is left out stays; null is as left out, but for `expiresAtMs`, where it keeps the version for good. */
export const versionChange = z.strictObject({
  description: description.nullish(),
  approval: z
    .strictObject({
      status: z.enum(approvalStatuses),
      note: note.nullish(),
      withoutResults: note
        .nullish()
        .describe(
          'Why it is approved although results of an evaluation are missing or fell, in ten characters or more.',
        ),
    })
    .nullish(),
  tags: tags.nullish().describe('Null takes a tag away.'),
  metrics: metrics.nullish().describe('By name; null takes a metric away.'),
  expiresAtMs: z.int().min(0).nullish().describe('In ms since 1970; null keeps the version for good.'),
});

export const groupChange = z.strictObject({
  description: description.nullish(),
  tags: tags.nullish().describe('Null takes a tag away.'),
});

/** @throws `invalid_argument` naming the parameter */
export function decodeUsageQuery(query: Readonly<Record<string, string>>): UsageQuery {
  const { by, from: fromMs, to: toMs } = checked(usageQuery, query, 'query');
  return given({ by, fromMs, toMs });
}

/** @throws `invalid_argument` naming the parameter */
export function decodeVersionQuery(query: Readonly<Record<string, string>>): VersionQuery {
  const { ended, ...others } = checked(versionQuery, query, 'query');
  return given({ ...others, ended: ended === undefined ? undefined : ended === 'true' });
}

/** The part named by a query; all files without one. @throws `invalid_argument` */
export function decodePart(query: Readonly<Record<string, string>>): VersionPart {
  return checked(archiveQuery, query, '').part;
}

/** @throws `invalid_argument` naming the field */
export function decodeVersionChange(body: unknown): VersionChange {
  const { approval, metrics: figures, expiresAtMs, ...others } = checked(versionChange, body, 'body');
  return given({
    ...noNulls(others),
    approval:
      approval == null
        ? undefined
        : {
            ...{ status: approval.status, note: approval.note ?? '' },
            ...(approval.withoutResults == null ? {} : { withoutResults: approval.withoutResults }),
          },
    metrics:
      figures == null
        ? undefined
        : Object.fromEntries(
            Object.entries(figures).map(([name, said]) => [
              name,
              said === null ? null : { value: said.value, note: said.note ?? '' },
            ]),
          ),
    expiresAtMs,
  });
}

/** @throws `invalid_argument` naming the field */
export function decodeGroupChange(body: unknown): GroupChange {
  return given(noNulls(checked(groupChange, body, 'body')));
}

function checked<S extends z.ZodType>(schema: S, value: unknown, root: string): z.output<S> {
  const result = schema.safeParse(value);
  if (!result.success) throw schemaRefusal(result.error, value, root);
  return result.data;
}

type WithoutNull<T> = { readonly [K in keyof T]: Exclude<T[K], null> | undefined };

function noNulls<T extends object>(members: T): WithoutNull<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null)) as WithoutNull<T>; // true: the same members, none null
}

/** Without the members that are undefined. */
function given<T extends object>(members: { readonly [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T; // true: the same members, none undefined
}
