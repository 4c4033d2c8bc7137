/** defineTask: a task that is checked where it is written. */
import { complaint } from '@loopwright/protocol';
import type { Problem } from '../environments/environment.js';
import { type BadFromGoodOptions, badKinds } from '../grader-gate/bad-kinds.js';
import { resolveSettings } from './settings.js';
import { isAnswerEnvironment, type LabelledCompletion, type ProblemSource, type Task } from './task.js';

const fields = ['name', 'environment', 'train', 'heldOut', 'cases', 'badFromGood', 'model', 'settings'];

/**
 * The task as it is given, checked: commands such as `loopwright preflight ./my-task` take the file that exports it as `task`.
 *
 * @throws `invalid_argument` with the field that is wrong
 * @example
 * export const task = defineTask({ name: 'sums', environment, train, heldOut, settings: { maxTokens: 8 } });
 */
export function defineTask<P extends Problem>(task: Task<P>): Task<P> {
  requireObject('task', task);
  const unknownField = Object.keys(task).find((field) => !fields.includes(field));
  if (unknownField !== undefined)
    throw complaint({ field: `task.${unknownField.slice(0, 60)}`, expected: fields.join(', '), got: 'another name' });
  const { name, environment, train, heldOut, cases, badFromGood, model, settings } = task;
  checkTaskName('task.name', name);
  checkEnvironment(environment);
  checkSource('task.train', train);
  checkSource('task.heldOut', heldOut);
  if (cases !== undefined) checkCases(cases, { field: 'task.cases', isAnswer: isAnswerEnvironment(environment) });
  if (badFromGood !== undefined) checkMaking(badFromGood);
  if (model !== undefined && (typeof model !== 'string' || model.trim() === ''))
    throw complaint({ field: 'task.model', expected: 'the name or path of a model', got: kind(model) });
  if (settings !== undefined) requireObject('task.settings', settings);
  resolveSettings(settings, 'task.settings');
  return task;
}

/** @throws `invalid_argument` */
export function checkTaskName(field: string, name: unknown): asserts name is string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (typeof name !== 'string' || name.trim() === '' || name.length > 100 || /[\u0000-\u001f\u007f]/.test(name))
    throw complaint({
      field,
      expected: '1 to 100 characters without control characters',
      got: kind(name),
    });
}

function checkEnvironment(environment: unknown): void {
  requireObject('task.environment', environment);
  const { name, draw, grade, begin } = environment;
  if (typeof name !== 'string')
    throw complaint({ field: 'task.environment.name', expected: 'a text', got: kind(name) });
  if (typeof draw !== 'function')
    throw complaint({ field: 'task.environment.draw', expected: 'a function that gives a problem', got: kind(draw) });
  if ((typeof grade === 'function') === (typeof begin === 'function')) {
    const got = typeof grade === 'function' ? 'both' : 'neither';
    throw complaint({ field: 'task.environment', expected: 'either grade (one answer) or begin (several turns)', got });
  }
}

function checkSource<P extends Problem>(field: string, source: ProblemSource<P> | undefined): void {
  if (source === undefined || typeof source === 'function') return;
  if (Array.isArray(source)) {
    checkProblems(field, source);
    return;
  }
  if (typeof source === 'object' && source !== null && Symbol.asyncIterator in source) {
    if (!('next' in source)) return;
    throw complaint({
      field,
      expected: 'something that can be read more than once',
      got: 'a generator',
      remedy: 'give the function that makes it',
    });
  }
  throw complaint({
    field,
    expected: 'a list of problems, an async iterable, or a function of either',
    got: kind(source),
  });
}

/** @throws `invalid_argument` where there are none, one has no id, question or answer, or two have the same id */
export function checkProblems(field: string, problems: readonly unknown[]): void {
  if (problems.length === 0)
    throw complaint({
      field,
      expected: 'at least one problem',
      got: 'none',
      remedy: 'look at how they are read and filtered, or leave the field out',
    });
  const places = new Map<string, number>();
  for (const [i, problem] of problems.entries()) {
    checkProblem(`${field}[${i}]`, problem);
    const { id } = problem as Problem; // true: it was checked just now
    const earlier = places.get(id);
    if (earlier !== undefined)
      throw complaint({
        field: `${field}[${i}].id`,
        expected: 'an id of its own',
        got: `that of ${field}[${earlier}]`,
      });
    places.set(id, i);
  }
}

/** @throws `invalid_argument` */
export function checkProblem(field: string, problem: unknown): void {
  requireObject(field, problem);
  const remedy = 'mend the row, or leave it out where it is read';
  if (typeof problem.id !== 'string' || problem.id === '')
    throw complaint({ field: `${field}.id`, expected: 'a text that names the problem', got: kind(problem.id), remedy });
  for (const name of ['question', 'answer'] as const) {
    if (typeof problem[name] !== 'string')
      throw complaint({ field: `${field}.${name}`, expected: 'a text', got: kind(problem[name]), remedy });
  }
}

/** @throws `invalid_argument` for a case that is none; @param isAnswer of one answer, so that the completion is one text */
export function checkCases(
  cases: readonly LabelledCompletion[],
  { field = 'cases', isAnswer }: { readonly field?: string; readonly isAnswer: boolean },
): void {
  if (!Array.isArray(cases)) throw complaint({ field, expected: 'a list of labelled completions', got: kind(cases) });
  for (const [i, each] of cases.entries()) {
    const at = `${field}[${i}]`;
    requireObject(at, each);
    const { problem, label, completion, kind: why, stopReason } = each;
    checkProblem(`${at}.problem`, problem);
    if (label !== 'good' && label !== 'bad')
      throw complaint({ field: `${at}.label`, expected: 'good or bad', got: kind(label) });
    if (typeof completion !== 'string') checkTurns(`${at}.completion`, completion, isAnswer);
    if (why !== undefined && (typeof why !== 'string' || why.length > 100))
      throw complaint({ field: `${at}.kind`, expected: 'a text of at most 100 characters', got: kind(why) });
    if (stopReason !== undefined && stopReason !== 'stop' && stopReason !== 'length')
      throw complaint({ field: `${at}.stopReason`, expected: 'stop or length', got: kind(stopReason) });
  }
}

function checkMaking(making: BadFromGoodOptions): void {
  requireObject('task.badFromGood', making);
  const { without = [] } = making;
  const isList = Array.isArray(without);
  if (isList && without.every((kind) => badKinds.includes(kind))) return;
  throw complaint({
    field: 'task.badFromGood.without',
    expected: `a list of ${badKinds.join(', ')}`,
    got: isList ? 'another name' : kind(without),
  });
}

function checkTurns(field: string, turns: unknown, isAnswer: boolean): void {
  if (isAnswer || !Array.isArray(turns) || turns.length === 0)
    throw complaint({ field, expected: isAnswer ? 'a text' : 'a text, or at least one turn', got: kind(turns) });
  for (const [t, turn] of turns.entries()) {
    requireObject(`${field}[${t}]`, turn);
    const { text, toolCalls = [] } = turn;
    if (typeof text !== 'string')
      throw complaint({ field: `${field}[${t}].text`, expected: 'a text', got: kind(text) });
    if (!Array.isArray(toolCalls))
      throw complaint({ field: `${field}[${t}].toolCalls`, expected: 'a list of calls', got: kind(toolCalls) });
    for (const [c, call] of toolCalls.entries()) {
      const at = `${field}[${t}].toolCalls[${c}]`;
      requireObject(at, call);
      if (typeof call.name !== 'string')
        throw complaint({ field: `${at}.name`, expected: 'the name of a tool', got: kind(call.name) });
      requireObject(`${at}.arguments`, call.arguments);
    }
  }
}

function requireObject(field: string, value: unknown): asserts value is Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return;
  throw complaint({ field, expected: 'an object', got: kind(value) });
}

/** What a value is, without saying it. */
function kind(value: unknown): string {
  if (value === null) return 'null';
  if (value === undefined) return 'nothing';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return typeof value === 'string' ? `a text of ${value.length} characters` : typeof value;
}
