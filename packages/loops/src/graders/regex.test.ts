import { describe, expect, it } from 'vitest';
import type { Answer, Problem } from '../environments/environment.js';
import { exactMatch } from './exact.js';
import { createGrader } from './grader.js';
import { numericAnswer } from './numeric.js';
import { type RegexMatchOptions, regexMatch } from './regex.js';

const answer = (text: string, gold = '42'): Answer<Problem> => ({
  problem: { id: 'p', question: '?', answer: gold },
  text,
  stopReason: 'stop',
});
const grade = (options: RegexMatchOptions<Problem>, text: string, gold?: string) =>
  createGrader({ components: [regexMatch(options)] })(answer(text, gold));

describe('regexMatch', () => {
  it('is 1 where the pattern is found, or where it is not, as asked', async () => {
    expect(await grade({ pattern: '#### [0-9]+' }, 'so #### 42')).toMatchObject({ status: 'ok', reward: 1 });
    expect(await grade({ pattern: '#### [0-9]+' }, 'so 42')).toMatchObject({ status: 'ok', reward: 0 });
    expect(await grade({ pattern: 'as an AI', flags: 'i', expect: 'absent' }, 'As an ai …')).toMatchObject({
      reward: 0,
    });
    expect(await grade({ pattern: '[0-9]+', match: 'full' }, ' 42\r\n')).toMatchObject({ reward: 1 });
    expect(await grade({ pattern: '[0-9]+', match: 'full' }, '42!')).toMatchObject({ reward: 0 });
    expect(await grade({ pattern: '^b$', flags: 'm' }, 'a\nb\nc')).toMatchObject({ reward: 1 });
    expect(await grade({ pattern: '^b$' }, 'a\nb\nc')).toMatchObject({ reward: 0 });
  });

  it('hands the last value of a named group to another component', async () => {
    const options = { pattern: 'answer: (?P<value>[-0-9.]+)', group: 'value', by: numericAnswer() };
    expect(await grade(options, 'answer: 7, no, answer: 42.0')).toMatchObject({ status: 'ok', reward: 1 });
    expect(await grade(options, 'answer: 42, no, answer: 7')).toMatchObject({ status: 'ok', reward: 0 });
    expect(await grade(options, 'it is 42')).toMatchObject({ status: 'unparsed', reward: 0 });
    const either = { pattern: 'a=(?P<v>\\w+)|b', group: 'v', by: exactMatch() };
    expect(await grade(either, 'a=Ja b', 'ja')).toMatchObject({ status: 'ok', reward: 1 });
    expect(await grade(either, 'b')).toMatchObject({ status: 'unparsed' });
  });

  it('takes linear time for patterns on which backtracking engines hang', async () => {
    const started = performance.now();
    const hostile = { pattern: '^(a+)+$' };
    expect(await grade(hostile, `${'a'.repeat(20_000)}!`)).toMatchObject({ status: 'ok', reward: 0 });
    expect(performance.now() - started).toBeLessThan(10_000); // (a+)+ on 30 letters takes a backtracking engine minutes
  });

  it('takes a pattern of each problem, and one that cannot be read is an error of the grader', async () => {
    const pattern = ({ answer: gold }: Problem) => gold;
    expect(await grade({ pattern }, 'so: cat', 'c.t')).toMatchObject({ reward: 1 });
    const failed = await grade({ pattern }, 'so: cat', '(');
    expect(failed).toMatchObject({ status: 'grader_error', error: { code: 'invalid_argument' } });
  });

  it('refuses at construction what could only fail later, by name', () => {
    const refused = (options: RegexMatchOptions<Problem>, field: string) =>
      expect(() => regexMatch(options)).toThrow(
        expect.objectContaining({ details: expect.objectContaining({ field }) }),
      );
    refused({ pattern: '' }, 'pattern');
    refused({ pattern: '(' }, 'pattern');
    refused({ pattern: '(?=a)b' }, 'pattern');
    refused({ pattern: '(a)\\1' }, 'pattern');
    refused({ pattern: 'a', flags: 'g' }, 'flags');
    refused({ pattern: 'a', group: 'x' }, 'group');
    refused({ pattern: 'a', group: 'x', by: exactMatch() }, 'group');
    refused({ pattern: 'a', group: 'constructor', by: exactMatch() }, 'group');
  });
});
