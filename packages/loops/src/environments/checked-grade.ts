/** What a grader gave, checked: one in JavaScript gives what it likes, and what is no grade must not be trained on. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { kindOf } from '../data/row.js';
import { componentNameFault } from './component-name.js';
import { type Grade, type GradedComponent, isFailure } from './environment.js';

/** What a grade of each status holds. The compiler refuses a status that is missing here, and one that no grade has. */
const ofGrade = {
  ok: 'reward',
  unparsed: 'reward',
  timeout: 'error',
  grader_error: 'error',
} as const satisfies Readonly<Record<Grade['status'], 'reward' | 'error'>>;

/** And of each component of it. */
const ofComponent = {
  ok: 'score',
  unparsed: 'score',
  not_applicable: 'nothing',
  timeout: 'error',
  grader_error: 'error',
} as const satisfies Readonly<Record<GradedComponent['status'], 'score' | 'error' | 'nothing'>>;

/**
 * The grade as it was given or, where it is none, a `grader_error` that says why: an unknown status, a reward, weight or score that is no finite
 * number, components that are no list of named ones. A reward beside a failure is left out: it would be taken for one.
 */
export function checkedGrade(given: unknown): Grade {
  const error = faultOf(given);
  if (error !== undefined) return { status: 'grader_error', error };
  const grade = given as Grade; // true: all that loops rely on was checked
  if (!isFailure(grade) || !('reward' in grade)) return grade;
  const { reward: _, ...failure } = grade;
  return failure;
}

function faultOf(given: unknown): LoopwrightError | undefined {
  const { status, reward, components } = fieldsOf(given);
  if (status === undefined) {
    const got = typeof given === 'object' && given !== null ? `${kindOf(given)} without status` : kindOf(given);
    return fault('grade', 'a grade, such as { status: "ok", reward: 1 }', got);
  }
  if (!isKey(ofGrade, status)) return unknownStatus('grade.status', status, ofGrade);
  if (ofGrade[status] === 'reward' && !Number.isFinite(reward)) return noNumber('grade.reward', reward);
  if (components === undefined) return undefined;
  if (!Array.isArray(components))
    return fault('grade.components', 'a list of { name, weight, status, score }', kindOf(components));
  const names = components.map((part) => fieldsOf(part).name);
  for (const [i, part] of components.entries()) {
    const found =
      componentNameFault(`grade.components[${i}].name`, { names, at: i }) ??
      componentFault(`grade.components[${i}]`, part);
    if (found !== undefined) return found;
  }
  return undefined;
}

function componentFault(field: string, part: unknown): LoopwrightError | undefined {
  const { weight, status, score } = fieldsOf(part);
  if (!Number.isFinite(weight)) return noNumber(`${field}.weight`, weight);
  if (!isKey(ofComponent, status)) return unknownStatus(`${field}.status`, status, ofComponent);
  return ofComponent[status] === 'score' && !Number.isFinite(score) ? noNumber(`${field}.score`, score) : undefined;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}; // true: an object
}

function isKey<T extends object>(table: T, key: unknown): key is keyof T {
  return typeof key === 'string' && Object.hasOwn(table, key);
}

function unknownStatus(field: string, status: unknown, table: object): LoopwrightError {
  // A word is the grader's own; more may be what the model wrote, which no message tells.
  const isWord = typeof status === 'string' && /^[A-Za-z_-]{1,32}[?!]?$/.test(status);
  return fault(field, `one of ${Object.keys(table).join(', ')}`, isWord ? status : kindOf(status));
}

function noNumber(field: string, value: unknown): LoopwrightError {
  return fault(field, 'a finite number', typeof value === 'number' ? String(value) : kindOf(value));
}

function fault(field: string, expected: string, got: string): LoopwrightError {
  return complaint({ field, expected, got, remedy: 'mend the grader, or make it with createGrader' });
}
