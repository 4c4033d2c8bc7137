/** Tags of versions and groups: short texts by key. */
import { complaint, versionLimits } from '@loopwright/protocol';

/** Null takes a tag away. */
export type TagChange = Readonly<Record<string, string | null>>;

/** @throws `invalid_argument` when there would be too many */
export function changedTags(tags: Readonly<Record<string, string>>, change: TagChange): Record<string, string> {
  const all = Object.entries({ ...tags, ...change }).filter((entry): entry is [string, string] => entry[1] !== null);
  if (all.length > versionLimits.tags)
    throw complaint({ field: 'tags', expected: `at most ${versionLimits.tags}`, got: `${all.length} in all` });
  return Object.fromEntries(all.sort(([a], [b]) => (a < b ? -1 : 1)));
}
