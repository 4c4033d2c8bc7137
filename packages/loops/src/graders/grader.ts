/** A grader: the weighted sum of named components, with every way to fail kept apart from the reward. */
import { complaint, LoopwrightError } from '@loopwright/protocol';
import { componentNameFault } from '../environments/component-name.js';
import type { Answer, Grade, GradeContext, GradedComponent, Problem } from '../environments/environment.js';
import type { Component, Score } from './component.js';

export interface GraderOptions<P extends Problem> {
  readonly components: readonly Component<P>[];
  /** Of each component that names none; default 30 000. */
  readonly timeoutMs?: number;
}

/** Fits `Environment.grade`. Never throws and never rejects. */
export type Grader<P extends Problem = Problem> = (answer: Answer<P>, context?: GradeContext) => Promise<Grade>;

/**
 * A grader of components that run side by side: the reward is the sum of weight × score.
 *
 * Status of the whole: `grader_error` when a component threw (or none applied), else `timeout` when one took too long, else
 * `unparsed` when one could not read the answer, else `ok`. A component of weight 0 never decides it.
 *
 * The time limit ends waits, not loops: a component that never gives the thread back can't be stopped from within it.
 * Patterns, programs and queries of others belong into {@link regexMatch}, {@link unitTests} and `sqlResult`, which are bounded.
 *
 * @throws `invalid_argument` for no components, two of a name, or a weight or time that is no number
 * @example
 * const grade = createGrader({ components: [mathAnswer(), regexMatch({ pattern: '####', weight: 0.1 })] });
 * const environment = { name: 'sums', draw, grade };
 */
export function createGrader<P extends Problem = Problem>({
  components,
  timeoutMs = 30_000,
}: GraderOptions<P>): Grader<P> {
  check(components, timeoutMs);
  return async (answer, { signal } = {}) => {
    const stops = new Set<Stop>();
    // One listener for all components: more than ten on one signal make Node warn of a leak.
    const onAbort = (): void => {
      for (const stop of stops) stop(signal?.reason);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    const running = { answer, signal, stops };
    try {
      return sumOf(
        await Promise.all(
          components.map((component) =>
            runComponent({ ...running, component, timeoutMs: component.timeoutMs ?? timeoutMs }),
          ),
        ),
      );
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  };
}

function check<P extends Problem>(components: readonly Component<P>[], timeoutMs: number): void {
  const refuse = (field: string, expected: string, got: string): never => {
    throw complaint({ field, expected, got });
  };
  if (components.length === 0) refuse('components', 'at least one component', 'none');
  const names = components.map(({ name }) => name);
  for (const [i, { weight = 1, timeoutMs: own = timeoutMs }] of components.entries()) {
    const fault = componentNameFault(`components[${i}].name`, { names, at: i });
    if (fault !== undefined) throw fault;
    if (!Number.isFinite(weight)) refuse(`components[${i}].weight`, 'a finite number', String(weight));
    if (!(own > 0)) refuse(`components[${i}].timeoutMs`, 'a number above 0', String(own));
  }
}

type Stop = (reason: unknown) => void;

interface ComponentRun<P extends Problem> {
  readonly component: Component<P>;
  readonly answer: Answer<P>;
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number;
  /** Of the components that are at work: called when the caller aborts. */
  readonly stops: Set<Stop>;
}

async function runComponent<P extends Problem>(run: ComponentRun<P>): Promise<GradedComponent> {
  const { name, weight = 1 } = run.component;
  try {
    const given = await withDeadline(run);
    const score: Score =
      typeof given === 'number' ? { status: 'ok', score: given } : (given ?? { status: 'not_applicable' });
    if (score.status === 'not_applicable') return { name, weight, status: 'not_applicable' };
    const value = score.score ?? 0;
    if (!Number.isFinite(value))
      throw complaint({ field: `${name}.score`, expected: 'a finite number', got: String(value) });
    return score.status === 'ok'
      ? { name, weight, status: 'ok', score: value, ...(score.trace === undefined ? {} : { trace: score.trace }) }
      : { name, weight, status: 'unparsed', score: value, reason: score.reason };
  } catch (error) {
    const isTimeout = LoopwrightError.isInstance(error) && error.code === 'grader_timeout';
    return { name, weight, status: isTimeout ? 'timeout' : 'grader_error', error };
  }
}

async function withDeadline<P extends Problem>({
  component,
  answer,
  signal,
  timeoutMs,
  stops,
}: ComponentRun<P>): Promise<number | null | Score> {
  const own = new AbortController();
  let stop: Stop = () => {};
  const stopped = new Promise<never>((_, reject) => {
    stop = (reason) => {
      own.abort(reason);
      reject(reason);
    };
  });
  stopped.catch(() => {}); // it may lose the race and reject later, for nobody
  const timer =
    timeoutMs === Number.POSITIVE_INFINITY
      ? undefined
      : setTimeout(() => stop(graderTimeout(component.name, timeoutMs)), timeoutMs);
  stops.add(stop);
  try {
    if (signal?.aborted === true) throw signal.reason;
    return await Promise.race([component.score(answer, { signal: own.signal }), stopped]);
  } finally {
    clearTimeout(timer);
    stops.delete(stop);
  }
}

/** The error of a component whose time was over. */
export function graderTimeout(name: string, timeoutMs: number): LoopwrightError {
  return new LoopwrightError({
    code: 'grader_timeout',
    message: `${name}: no score within ${timeoutMs} ms; give it more time, or bound its work`,
    details: {
      field: name,
      expected: `a score within ${timeoutMs} ms`,
      got: 'none',
      remedy: 'give it more time, or bound its work',
    },
  });
}

/** The grade of an answer from those of its components. */
export function sumOf(components: readonly GradedComponent[]): Grade {
  const deciding = components.filter(({ weight }) => weight !== 0);
  const failed = deciding.find(({ status }) => status === 'grader_error');
  if (failed?.status === 'grader_error') return { status: 'grader_error', error: failed.error, components };
  const late = deciding.find(({ status }) => status === 'timeout');
  if (late?.status === 'timeout') return { status: 'timeout', error: late.error, components };
  const scored = deciding.flatMap((each) => (each.status === 'ok' || each.status === 'unparsed' ? [each] : []));
  if (scored.length === 0) {
    const error = complaint({
      field: 'components',
      expected: 'a score of at least one of them',
      got: 'none that applies to this problem',
      remedy: 'add a component for such problems, or leave them out',
    });
    return { status: 'grader_error', error, components };
  }
  const reward = scored.reduce((sum, { weight, score }) => sum + weight * score, 0);
  const unread = scored.find(({ status }) => status === 'unparsed');
  return unread?.status === 'unparsed'
    ? { status: 'unparsed', reward, reason: unread.reason, components }
    : { status: 'ok', reward, components };
}
