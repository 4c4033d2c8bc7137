/** Whether two JSON values are the same. */

export interface SameJsonOptions {
  /** Whether objects may have further members, at every depth; lists are compared in full. Default false. */
  readonly subset?: boolean;
  /** By how much numbers may differ; default 0. */
  readonly tolerance?: number;
  /** Default false: `Paris` isn't `paris`. Never applies to keys. */
  readonly ignoreCase?: boolean;
}

/** Keys in any order; only members of their own, so `constructor` is a key as any other. Text in Unicode's composed form. */
export function sameJson(value: unknown, expected: unknown, options: SameJsonOptions = {}): boolean {
  const { subset = false, tolerance = 0, ignoreCase = false } = options;
  if (typeof value === 'number' && typeof expected === 'number')
    return value === expected || Math.abs(value - expected) <= tolerance;
  if (typeof value === 'string' && typeof expected === 'string') {
    const normal = (text: string): string => (ignoreCase ? text.normalize('NFC').toLowerCase() : text.normalize('NFC'));
    return normal(value) === normal(expected);
  }
  if (typeof value !== 'object' || typeof expected !== 'object' || value === null || expected === null)
    return value === expected;
  if (Array.isArray(value) || Array.isArray(expected)) {
    if (!Array.isArray(value) || !Array.isArray(expected) || value.length !== expected.length) return false;
    return value.every((each, i) => sameJson(each, expected[i], options));
  }
  const [own, wanted] = [Object.entries(value), Object.entries(expected)];
  if (!subset && own.length !== wanted.length) return false;
  const members = new Map(own);
  return wanted.every(([key, member]) => members.has(key) && sameJson(members.get(key), member, options));
}
