/** Judging what tools a model called, with what, in which order: a pure function over its calls. */
import { complaint } from '@loopwright/protocol';
import type { Grade, GradedComponent } from '../environments/environment.js';
import type { ToolCall } from '../episodes/environment.js';
import { sumOf } from './grader.js';
import { sameJson } from './json/same-json.js';

type Arguments = Readonly<Record<string, unknown>>;

/** A call that is wanted. */
export interface ExpectedCall {
  readonly name: string;
  /**
   * Default: any arguments. An object is compared as JSON, with keys in any order; a function says whether they are right, and what it
   * throws is a `grader_error`.
   */
  readonly arguments?: Arguments | ((args: Arguments) => boolean);
  /** `exact` (the default): no other keys than these. `subset`: these at least, within objects too. */
  readonly match?: 'exact' | 'subset';
}

export interface ToolTraceOptions {
  readonly expected: readonly ExpectedCall[];
  /** Default `strict`: in the order of `expected`, with other calls between them where `extra` allows any. */
  readonly order?: 'strict' | 'any';
  /** Whether calls that nothing expects cost anything; default `penalized`: each lowers `calls`. */
  readonly extra?: 'penalized' | 'allowed';
  /** Names of tools that must not be called; default none. */
  readonly forbidden?: readonly string[];
  /** Calls at most; default any number. */
  readonly maxCalls?: number;
  /** Of the components `calls`, `forbidden`, `budget`; default 1, 1 and 0.5. The latter two are there where they are asked for. */
  readonly weights?: { readonly calls?: number; readonly forbidden?: number; readonly budget?: number };
}

/** As much of a turn as is looked at. */
export interface TracedTurn {
  readonly toolCalls: readonly ToolCall[];
}

/** All whole calls of an episode, in order. Broken ones were never calls. */
export function toolCallsOf(turns: readonly TracedTurn[]): readonly ToolCall[] {
  return turns.flatMap(({ toolCalls }) => toolCalls);
}

/**
 * A judge of calls. Its grade has the components `calls` (1 for exactly the expected calls; else the share
 * matched / max(expected, made), or matched / expected where extra calls are allowed), `forbidden` (0, or −1 when a
 * forbidden tool was called) and `budget` (0, or −1 when there were more calls than `maxCalls`).
 *
 * Each call matches one expected call at most, and as many are matched as can be.
 *
 * @throws `invalid_argument` for a budget that is no whole number, a name that is blank, both expected and forbidden, or a bad weight
 * @example
 * const grade = toolTrace({ expected: [{ name: 'search', arguments: { q: 'Oslo' }, match: 'subset' }], forbidden: ['delete'] });
 * // in an episode, with the turns that it kept: return { grade: grade(toolCallsOf(turns)) };
 */
export function toolTrace(options: ToolTraceOptions): (calls: readonly ToolCall[]) => Grade {
  const weights = { calls: 1, forbidden: 1, budget: 0.5, ...options.weights };
  check(options, weights);
  const { expected, order = 'strict', extra = 'penalized', forbidden = [], maxCalls } = options;
  return (calls) => {
    const components: GradedComponent[] = [];
    try {
      const matched = matchedCount(expected, calls, order);
      const of = extra === 'allowed' ? expected.length : Math.max(expected.length, calls.length);
      const trace = `${matched} of ${expected.length} expected calls, in ${calls.length}`;
      components.push({
        ...{ name: 'calls', weight: weights.calls, status: 'ok', trace },
        score: of === 0 ? 1 : matched / of,
      });
    } catch (error) {
      components.push({ name: 'calls', weight: weights.calls, status: 'grader_error', error });
    }
    const flag = (name: 'forbidden' | 'budget', isBroken: boolean): void => {
      components.push({ name, weight: weights[name], status: 'ok', score: isBroken ? -1 : 0 });
    };
    if (forbidden.length > 0)
      flag(
        'forbidden',
        calls.some(({ name }) => forbidden.includes(name)),
      );
    if (maxCalls !== undefined) flag('budget', calls.length > maxCalls);
    return sumOf(components);
  };
}

function check(
  { expected, order, extra, forbidden = [], maxCalls }: ToolTraceOptions,
  weights: Readonly<Record<string, number>>,
): void {
  const refuse = (field: string, wanted: string, got: string): never => {
    throw complaint({ field, expected: wanted, got });
  };
  for (const [i, { name, arguments: args, match = 'exact' }] of expected.entries()) {
    if (typeof name !== 'string' || name.trim() === '') refuse(`expected[${i}].name`, 'the name of a tool', 'none');
    if (forbidden.includes(name)) refuse(`expected[${i}].name`, 'a tool that is not forbidden', name);
    if (!['exact', 'subset'].includes(match)) refuse(`expected[${i}].match`, 'exact or subset', match);
    const isRule = args === undefined || typeof args === 'function';
    if (!isRule && (typeof args !== 'object' || args === null || Array.isArray(args)))
      refuse(`expected[${i}].arguments`, 'an object or a function', args === null ? 'null' : typeof args);
  }
  if (order !== undefined && !['strict', 'any'].includes(order)) refuse('order', 'strict or any', order);
  if (extra !== undefined && !['penalized', 'allowed'].includes(extra)) refuse('extra', 'penalized or allowed', extra);
  if (maxCalls !== undefined && !(Number.isInteger(maxCalls) && maxCalls >= 0))
    refuse('maxCalls', 'a whole number from 0', String(maxCalls));
  for (const [name, weight] of Object.entries(weights))
    if (!Number.isFinite(weight)) refuse(`weights.${name}`, 'a finite number', String(weight));
}

function matchedCount(expected: readonly ExpectedCall[], calls: readonly ToolCall[], order: 'strict' | 'any'): number {
  const fits = expected.map((wanted) => calls.map((call) => isMatch(wanted, call)));
  return order === 'strict' ? longestCommon(fits, calls.length) : mostPairs(fits);
}

function isMatch({ name, arguments: args, match = 'exact' }: ExpectedCall, call: ToolCall): boolean {
  if (call.name !== name) return false;
  if (args === undefined) return true;
  if (typeof args === 'function') {
    const said: unknown = args(call.arguments);
    if (typeof said === 'boolean') return said;
    throw complaint({ field: 'expected.arguments()', expected: 'true or false', got: typeof said });
  }
  return sameJson(call.arguments, args, { subset: match === 'subset' });
}

/** Length of the longest run of pairs that keeps both orders. */
function longestCommon(fits: readonly (readonly boolean[])[], calls: number): number {
  let best = new Array<number>(calls + 1).fill(0);
  for (const row of fits) {
    const next = [0];
    for (let j = 0; j < calls; j++) next.push(row[j] ? best[j]! + 1 : Math.max(best[j + 1]!, next[j]!));
    best = next;
  }
  return best[calls]!;
}

/** Pairs at most, each call and each expectation in one at most: augmenting paths, as an expectation may fit several calls. */
function mostPairs(fits: readonly (readonly boolean[])[]): number {
  const takenBy = new Map<number, number>();
  const place = (wanted: number, tried: Set<number>): boolean => {
    for (const [call, fit] of fits[wanted]!.entries()) {
      if (!fit || tried.has(call)) continue;
      tried.add(call);
      const holder = takenBy.get(call);
      if (holder === undefined || place(holder, tried)) {
        takenBy.set(call, wanted);
        return true;
      }
    }
    return false;
  };
  return fits.filter((_, wanted) => place(wanted, new Set())).length;
}
