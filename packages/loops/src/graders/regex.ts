/** Answers that are judged by a pattern, in time linear in their length, whatever the pattern. */
import { complaint } from '@loopwright/protocol';
import { RE2JS } from 're2js';
import type { Problem } from '../environments/environment.js';
import { type Component, type ComponentOptions, labelled, type Score } from './component.js';

export interface RegexMatchOptions<P extends Problem> extends ComponentOptions {
  /** In RE2's syntax: no look-around and no back-references. A function where each problem has its own. */
  readonly pattern: string | ((problem: P) => string);
  /** `i`: letter case doesn't count; `m`: `^` and `$` are those of lines; `s`: `.` is a line break as well. Default none. */
  readonly flags?: string;
  /** Default `search`: anywhere. `full`: the pattern is the whole answer, without the blanks around it. */
  readonly match?: 'search' | 'full';
  /** Default `present`. `absent` turns it round: 1 where the pattern isn't found. */
  readonly expect?: 'present' | 'absent';
  /**
   * Name of a group, as in `(?P<value>…)`: its text, of the last match that has it, is the answer that `by` scores.
   * Where there is none, the answer is `unparsed`.
   */
  readonly group?: string;
  /** Scores the text of `group`, such as `numericAnswer()`; its name and weight are left aside. */
  readonly by?: Component<P>;
}

/**
 * 1 when the pattern is found in the answer, else 0; with `group` and `by`, the score of what the group holds.
 *
 * Patterns meet text of others, and may be of others themselves. Their engine (RE2) never backtracks, so none is endless.
 *
 * @throws `invalid_argument` for a pattern that can't be read, an unknown flag, a group that the pattern hasn't
 * @example
 * regexMatch({ pattern: 'answer: (?P<value>-?[0-9]+)', group: 'value', by: numericAnswer() });
 */
export function regexMatch<P extends Problem = Problem>(options: RegexMatchOptions<P>): Component<P> {
  const { pattern, flags = '', match = 'search', expect = 'present', group, by } = options;
  if ((group === undefined) !== (by === undefined)) {
    const got = group === undefined ? 'by without group' : 'group without by';
    throw complaint({ field: 'group', expected: 'both group and by, or neither', got });
  }
  if (group !== undefined && expect === 'absent')
    throw complaint({ field: 'expect', expected: 'present, where a group is read', got: expect });
  const compile = (source: string): RE2JS => compilePattern({ source, flags, group, field: 'pattern' });
  const fixed = typeof pattern === 'string' ? compile(pattern) : undefined;
  return {
    ...labelled('regex', options),
    ...(by?.timeoutMs === undefined ? {} : { timeoutMs: by.timeoutMs }),
    score: (answer, context) => {
      const compiled = fixed ?? compile((pattern as (problem: P) => string)(answer.problem)); // true: not a string
      const text = match === 'full' ? answer.text.trim() : answer.text;
      if (group === undefined || by === undefined) {
        const found = match === 'full' ? compiled.matches(text) : compiled.matcher(text).find();
        return found === (expect === 'present') ? 1 : 0;
      }
      const value = groupOf(compiled, text, { group, match });
      if (value === undefined) return unparsed(group);
      return by.score({ ...answer, text: value }, context);
    },
  };
}

function unparsed(group: string): Score {
  return { status: 'unparsed', reason: `no match of the pattern has the group ${group}` };
}

function groupOf(
  compiled: RE2JS,
  text: string,
  { group, match }: { readonly group: string; readonly match: 'search' | 'full' },
): string | undefined {
  const matcher = compiled.matcher(text);
  if (match === 'full') return matcher.matches() ? (matcher.group(group) ?? undefined) : undefined;
  let last: string | undefined;
  while (matcher.find()) last = matcher.group(group) ?? last;
  return last;
}

const flagBits: Readonly<Record<string, number>> = {
  i: RE2JS.CASE_INSENSITIVE,
  m: RE2JS.MULTILINE,
  s: RE2JS.DOTALL,
};

function compilePattern({
  source,
  flags,
  group,
  field,
}: {
  readonly source: unknown;
  readonly flags: string;
  readonly group: string | undefined;
  readonly field: string;
}): RE2JS {
  if (typeof source !== 'string' || source === '')
    throw complaint({ field, expected: 'a pattern', got: source === '' ? 'empty text' : typeof source });
  let bits = 0;
  for (const flag of flags) {
    const bit = Object.hasOwn(flagBits, flag) ? flagBits[flag] : undefined;
    if (bit === undefined) throw complaint({ field: 'flags', expected: 'any of i, m, s', got: flags });
    bits |= bit;
  }
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(source, bits);
  } catch (cause) {
    throw complaint({
      field,
      expected: 'a pattern in the syntax of RE2',
      got: `${source.length} characters that are not`,
      remedy: 'leave out look-around and back-references; the cause says what is wrong',
      cause,
    });
  }
  if (group !== undefined && !Object.hasOwn(compiled.namedGroups(), group))
    throw complaint({ field: 'group', expected: 'a named group of the pattern, (?P<name>…)', got: group });
  return compiled;
}
