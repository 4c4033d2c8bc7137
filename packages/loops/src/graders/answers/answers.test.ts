import { describe, expect, it } from 'vitest';
import type { Answer, Problem } from '../../environments/environment.js';
import type { Score } from '../component.js';
import { exactMatch } from '../exact.js';
import { mathAnswer, sameMath } from '../math.js';
import { numericAnswer } from '../numeric.js';
import { finalAnswer } from './final-answer.js';
import { equalNumbers, numbersIn, parseNumber, showRational } from './rational.js';

type Stop = Answer<Problem>['stopReason'];
const context = { signal: new AbortController().signal };

async function scoreOf(
  component: { score: ReturnType<typeof numericAnswer>['score'] },
  text: string,
  { answer, stopReason = 'stop' }: { answer: string; stopReason?: Stop },
): Promise<Score> {
  const score = await component.score({ problem: { id: 'p', question: '?', answer }, text, stopReason }, context);
  if (score === null || typeof score === 'number') throw new Error('these components give whole scores');
  return score;
}

const numberOf = (text: string, options = {}): string | undefined => {
  const value = parseNumber(text, options) ?? numbersIn(text, options).at(-1);
  return value && showRational(value);
};

describe.each([
  ['numericAnswer', numericAnswer],
  ['mathAnswer', mathAnswer],
])('%s', (_, make) => {
  const isRight = async (text: string, answer: string, options: { percent?: boolean; stopReason?: Stop } = {}) => {
    const { stopReason = 'stop', ...rest } = options;
    return await scoreOf(make(rest), text, { answer, stopReason });
  };

  it.each([
    ['#### 1,234', '1234'],
    ['\\boxed{8,000}', '8000'],
    ['\\boxed{$9{,}500}', '9500'],
    ['The answer is $9{,}500.', '9500'],
    ['The total is 72 clips, altogether.', '72'],
    ['3 4', '4'],
    [`#### 42${' and so on'.repeat(40)}`, '42'],
    ['from $80,000 down to $70,000', '70000'],
    ['so that makes 42', '42'],
    ['it follows: 57-23', '23'],
    ['-5', '-5'],
    ['\\boxed{-\\frac{1}{2}}', '-0.5'],
    ['\\boxed{2\\frac{1}{2}}', '2.5'],
    ['\\boxed{35\\text{ cm}}', '35'],
  ])('reads %s as %s', async (text, answer) => {
    expect(await isRight(text, answer)).toMatchObject({ status: 'ok', score: 1 });
    expect(await isRight(text, `${answer}1`)).toMatchObject({ status: 'ok', score: 0 });
  });

  it('tells fractions apart, and one half from none of its spellings', async () => {
    expect(await isRight('\\boxed{\\frac{1}{2}}', '\\frac{1}{3}')).toMatchObject({ score: 0 });
    expect(await isRight('\\boxed{\\frac{1}{23}}', '\\frac{12}{3}')).toMatchObject({ score: 0 });
    for (const half of ['0.5', '1/2', '.5', '½', '\\frac12', '5e-1', '2/4'])
      expect(await isRight('\\boxed{\\frac{1}{2}}', half)).toMatchObject({ score: 1 });
  });

  it('reads 1/2 and ½ for 0.5, and 50% only when percent is switched on', async () => {
    for (const text of ['#### 1/2', '½', '#### ½']) expect(await isRight(text, '0.5')).toMatchObject({ score: 1 });
    expect(await isRight('50%', '0.5')).not.toMatchObject({ score: 1 });
    expect(await isRight('50%', '0.5', { percent: true })).toMatchObject({ score: 1 });
    expect(await isRight('\\boxed{50\\%}', '0.5', { percent: true })).toMatchObject({ score: 1 });
  });

  it('finds no answer in a box that the token limit cut, and says so', async () => {
    const cut = await isRight('first 41, so \\boxed{42', '42', { stopReason: 'length' });
    expect(cut).toMatchObject({ status: 'unparsed', reason: expect.stringContaining('truncated by the token limit') });
    const open = await isRight('first 41, so \\boxed{42', '42');
    expect(open).toMatchObject({ status: 'unparsed', reason: expect.not.stringContaining('token limit') });
  });

  it('takes the last of several boxes, and shows that in the trace', async () => {
    const score = await isRight('\\boxed{35 cm} and hence \\boxed{4}', '4');
    expect(score).toMatchObject({ score: 1, trace: expect.stringMatching(/boxed, the last of 2: 4/) });
  });

  it('does not crash on floods, divisions by nothing or odd marks', async () => {
    for (const text of [
      '1/0',
      '9'.repeat(5000),
      '1e999999999',
      '####',
      '\\boxed{}',
      '%',
      '{'.repeat(2000),
      '1,'.repeat(3000),
    ])
      expect(await isRight(text, '42')).not.toMatchObject({ score: 1 });
  });

  it('blames the data for a problem without an answer', async () => {
    for (const answer of ['', '  '])
      await expect(isRight('4', answer)).rejects.toMatchObject({ code: 'invalid_argument' });
    // true: rows of files hold null where their type says text
    await expect(isRight('4', null as never)).rejects.toMatchObject({
      details: { field: 'problem.answer', got: 'null' },
    });
  });
});

describe('numbers', () => {
  it('are compared exactly, and within a tolerance when one is given', async () => {
    expect(numberOf('0.1 + 0.2')).toBe('1/5');
    expect(numberOf('3 1/2')).toBe('7/2');
    const [third, rounded] = [parseNumber('1/3')!, parseNumber('0.3333')!];
    expect(equalNumbers(rounded, third)).toBe(false);
    expect(equalNumbers(rounded, third, { absolute: 1e-4 })).toBe(true);
    expect(equalNumbers(rounded, third, { relative: 1e-4 })).toBe(true);
    expect(equalNumbers(rounded, third, { relative: 1e-5 })).toBe(false);
    expect(await scoreOf(numericAnswer({ tolerance: { absolute: 0.01 } }), '3.14', { answer: '3.1416' })).toMatchObject(
      {
        score: 1,
      },
    );
  });

  it('are the whole text or none', () => {
    for (const text of ['12 apples', 'x', '1 2', '', '.', '-', '1/0', '1.2.3'])
      expect(parseNumber(text)).toBeUndefined();
    for (const text of ['12', '$12', '12.', ' 12 ', '1,200', '-1.5e3']) expect(parseNumber(text)).toBeDefined();
  });
});

describe('sameMath', () => {
  it.each([
    ['x+1', '1+x'],
    ['2\\sqrt{3}', '\\sqrt{12}'],
    ['\\frac{\\sqrt{2}}{2}', '\\frac{1}{\\sqrt{2}}'],
    ['(x+1)^2', 'x^2+2x+1'],
    ['\\left( 3, \\frac{\\pi}{2} \\right)', '(3,\\pi/2)'],
    ['x=5', '5'],
    ['\\{1, 2\\}', '\\{2,1\\}'],
    ['3, -3', '-3, 3'],
    ['\\text{East}', 'east'],
    ['90^\\circ', '90'],
    ['10\\text{ cm}^2', '10'],
    ['(-\\infty, 2]', '(-\\infty,2]'],
    ['\\dfrac{3}{4}', '0.75'],
    ['2\\pi r', '2 \\pi r'],
    ['4!', '24'],
    ['\\sin^2 x', '\\sin(x)^2'],
    ['\\sin(x)^2+\\cos(x)^2', '1'],
  ])('takes %s for %s', (a, b) => {
    expect(sameMath(a, b)).toBe(true);
    expect(sameMath(b, a)).toBe(true);
  });

  it.each([
    ['x+1', 'x-1'],
    ['east', 'seat'],
    ['no', 'on'],
    ['(1,2)', '(2,1)'],
    ['(1,2]', '(1,2)'],
    ['[1,2]', '\\{1,2\\}'],
    ['3, -3', '3, 3'],
    ['x^2', '2x'],
    ['\\sqrt{2}', '1.414'],
    ['1/0', '2/0'],
    ['', '0'],
  ])('tells %s from %s', (a, b) => {
    expect(sameMath(a, b)).toBe(false);
    expect(sameMath(b, a)).toBe(false);
  });

  it('compares text alone when numeric equality is off', () => {
    expect(sameMath('0.5', '1/2', { numericEquality: false })).toBe(false);
    expect(sameMath('\\dfrac{1}{2}', '\\frac12', { numericEquality: false })).toBe(true);
  });
});

describe('finalAnswer', () => {
  it('matches braces inside a box and ignores escaped ones', () => {
    expect(finalAnswer('\\boxed{\\frac{1}{2}} so')).toMatchObject({ text: '\\frac{1}{2}', marker: 'boxed' });
    expect(finalAnswer('\\boxed{\\{1,2\\}}')).toMatchObject({ text: '\\{1,2\\}' });
  });
});

describe('exactMatch', () => {
  it('ignores case, blanks and the spelling of accents, and nothing else', async () => {
    const score = (text: string, answer: string, options = {}) => scoreOf(exactMatch(options), text, { answer });
    expect(await score('  Caf\u0065\u0301  au lait', 'caf\u00e9 AU lait')).toMatchObject({ score: 1 });
    expect(await score('Paris.', 'Paris')).toMatchObject({ score: 0 });
    expect(await score('paris', 'Paris', { ignoreCase: false })).toMatchObject({ score: 0 });
    expect(await score('Let me see. \\boxed{Paris}', 'Paris', { of: 'final-answer' })).toMatchObject({ score: 1 });
  });
});
