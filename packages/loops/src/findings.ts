/** What a check found: a name, how grave it is, what was seen, and what to do. */

export const findingLevels = ['note', 'warn', 'stop'] as const;
/** `stop`: don't train before it is mended. */
export type FindingLevel = (typeof findingLevels)[number];

/** Nothing in it is content. */
export interface Finding {
  /** `group/what`; each is in a list once. */
  readonly name: string;
  readonly level: FindingLevel;
  /** With its numbers. */
  readonly seen: string;
  readonly remedy: string;
}

/** The gravest first; in order of discovery within a level. */
export function byLevel(findings: readonly Finding[]): Finding[] {
  const rank = ({ level }: Finding): number => -findingLevels.indexOf(level);
  return findings.toSorted((a, b) => rank(a) - rank(b));
}
