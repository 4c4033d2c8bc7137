/** What a schema found wrong, as the one error that names the first field with what was expected and what came. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import type * as z from 'zod';
import { describeValue, showKey } from './checks.js';

function pathOf(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    return text === '' ? showKey(String(key)) : `${text}.${showKey(String(key))}`;
  }, '');
}

/** What the schema wanted, in the words of our other refusals. */
function expectedBy(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.expected === 'int' ? 'an integer' : `a value of type ${issue.expected}`;
    case 'too_big':
      return `${sizeOf(issue.origin)} at most ${issue.maximum}`;
    case 'too_small':
      return `${sizeOf(issue.origin)} at least ${issue.minimum}`;
    case 'invalid_format':
      return `a string matching ${issue.pattern ?? issue.format}`;
    case 'invalid_value':
      return `one of ${issue.values.map(String).join(', ')}`;
    case 'unrecognized_keys':
      return 'no such key';
    case 'custom':
      return issue.message;
    default:
      return 'a value in one of the forms of the published API';
  }
}

function sizeOf(origin: string): string {
  if (origin === 'string') return 'a length of';
  return origin === 'array' ? 'a number of entries of' : 'a number of';
}

function fieldOf(root: string, path: readonly PropertyKey[]): string {
  return [root, pathOf(path)].filter((part) => part !== '').join('.') || 'body';
}

function valueAt(body: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined),
    body,
  );
}

/**
 * @param body what was checked
 * @param root name of its whole, in front of the path; nothing where members are named by themselves
 */
export function schemaRefusal({ issues: [issue] }: z.ZodError, body: unknown, root = ''): LoopwrightError {
  const whole = root || 'body';
  if (issue === undefined) return complaint({ field: whole, expected: 'another value', got: describeValue(body) });
  // A key that is refused is content, and is not shown.
  if (issue.code === 'invalid_key') {
    const [inner = issue] = issue.issues;
    return complaint({
      field: `${fieldOf(root, issue.path.slice(0, -1))} key`,
      expected: expectedBy(inner),
      got: 'another',
    });
  }
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const path = [...issue.path, ...unknown];
  return complaint({
    field: fieldOf(root, path),
    expected: expectedBy(issue),
    got: describeValue(valueAt(body, path)),
  });
}
