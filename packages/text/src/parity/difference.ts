/** The first place where two renderings differ, with what stands around it. */

export interface Difference {
  readonly unit: 'byte' | 'token';
  /** Bytes (UTF-8) or tokens that are the same. */
  readonly at: number;
  /** What stands from a little before that place on, in each; content, to be escaped before it is shown. */
  readonly expected: string;
  readonly got: string;
}

/** Characters shown before and behind. */
const [before, behind] = [24, 40];

/** Undefined where both are the same. */
export function textDifference(expected: string, got: string): Difference | undefined {
  if (expected === got) return undefined;
  const most = Math.min(expected.length, got.length);
  let at = 0;
  while (at < most && expected[at] === got[at]) at++;
  // Not within a pair of surrogates: half a character shows nothing.
  if (at > 0 && /[\ud800-\udbff]/.test(expected[at - 1]!)) at--;
  const shown = (text: string): string => text.slice(Math.max(0, at - before), at + behind);
  return {
    unit: 'byte',
    at: new TextEncoder().encode(expected.slice(0, at)).length,
    expected: shown(expected),
    got: shown(got),
  };
}

/** Undefined where both are the same. @param textOf the text of one token */
export function tokenDifference(
  expected: ArrayLike<number>,
  got: ArrayLike<number>,
  textOf: (id: number) => string,
): Difference | undefined {
  const most = Math.min(expected.length, got.length);
  let at = 0;
  while (at < most && expected[at] === got[at]) at++;
  if (at === expected.length && at === got.length) return undefined;
  const shown = (ids: ArrayLike<number>): string =>
    Array.from(ids)
      .slice(Math.max(0, at - 3), at + 5)
      .map((id) => `${id}:${JSON.stringify(textOf(id))}`)
      .join(' ');
  return { unit: 'token', at, expected: shown(expected), got: shown(got) };
}
