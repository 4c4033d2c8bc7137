import { describe, expect, it } from 'vitest';
import { checkedGrade } from './checked-grade.js';

const part = { name: 'right', weight: 1, status: 'ok', score: 1 };
const withPart = (other: object) => ({ status: 'ok', reward: 1, components: [part, { ...part, ...other }] });

describe('what a grader gave', () => {
  it('is the grade, as it was given', () => {
    for (const grade of [
      { status: 'ok', reward: 0.5, note: 'kept' },
      { status: 'unparsed', reward: 0, reason: 'no number' },
      { status: 'timeout', error: new Error('late') },
      withPart({ name: 'other', status: 'not_applicable', score: undefined }),
      withPart({ name: 'other', status: 'grader_error', score: undefined, error: new Error('x') }),
    ])
      expect(checkedGrade(grade)).toBe(grade);
  });

  it.each<[unknown, string, string]>([
    [undefined, 'grade', 'nothing'],
    [1, 'grade', 'a number'],
    [{ reward: 1 }, 'grade', 'an object without status'],
    [{ status: 'correct?', reward: 1 }, 'grade.status', 'correct?'],
    [{ status: 'The answer is 85.', reward: 1 }, 'grade.status', 'a text of 17 characters'],
    [{ status: 'constructor', reward: 1 }, 'grade.status', 'constructor'],
    [{ status: 1, reward: 1 }, 'grade.status', 'a number'],
    [{ status: 'ok' }, 'grade.reward', 'nothing'],
    [{ status: 'ok', reward: '1' }, 'grade.reward', 'a text of 1 characters'],
    [{ status: 'unparsed', reward: Number.NaN }, 'grade.reward', 'NaN'],
    [{ status: 'ok', reward: 1, components: { right: 1 } }, 'grade.components', 'an object'],
    [{ status: 'timeout', error: 1, components: null }, 'grade.components', 'null'],
    [{ status: 'ok', reward: 1, components: [0.5] }, 'grade.components[0].name', 'undefined'],
    [{ status: 'ok', reward: 1, components: [{ ...part, name: 'mean' }] }, 'grade.components[0].name', 'mean'],
    [{ status: 'ok', reward: 1, components: [{ ...part, name: 'a b' }] }, 'grade.components[0].name', '3 characters'],
    [{ status: 'ok', reward: 1, components: [part, part] }, 'grade.components[1].name', 'right'],
    [withPart({ weight: undefined, name: 'other' }), 'grade.components[1].weight', 'nothing'],
    [withPart({ status: 'right', name: 'other' }), 'grade.components[1].status', 'right'],
    [withPart({ name: 'other', score: Number.POSITIVE_INFINITY }), 'grade.components[1].score', 'Infinity'],
  ])('is a failure where it is %j', (given, field, got) => {
    const grade = checkedGrade(given);
    expect(grade).toMatchObject({ status: 'grader_error', error: { details: { field, got } } });
    expect(String('error' in grade && grade.error)).toContain(`${field}: expected`);
  });

  it('has no reward where it failed', () => {
    const error = new Error('late');
    expect(checkedGrade({ status: 'timeout', error, reward: 1 })).toEqual({ status: 'timeout', error });
  });
});
