/** What the guard raises: a finding of a step, with where it was seen and the page that explains it. */
import { type Finding, type FindingLevel, findingLevels } from '../findings.js';

/** An alarm of a run. Nothing in it is content. */
export interface Alarm extends Finding {
  /** `guard/what`. */
  readonly name: `guard/${string}`;
  readonly step: number;
  /** The datum, token, group or row, where there is one to point at; by number, never by its text. */
  readonly where?: string;
  /** In how many steps it was seen so far, this one included. */
  readonly times: number;
  /** Of the documentation. */
  readonly page: string;
}

/** In one line. */
export function alarmText({ name, level, step, seen, where, remedy, page, times }: Alarm): string {
  const often = times > 1 ? ` (seen in ${times} steps)` : '';
  const advice = `${remedy.charAt(0).toUpperCase()}${remedy.slice(1)}`;
  const place = where === undefined ? '' : `; ${where}`;
  return `${name} [${level}] at step ${step}${often}: ${seen}${place}. ${advice}. See ${page}`;
}

export function levelRank(level: FindingLevel): number {
  return findingLevels.indexOf(level);
}
