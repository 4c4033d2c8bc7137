import { describe, expect, it } from 'vitest';
import { badFromGood } from './bad-from-good.js';
import type { BadFromGoodOptions } from './bad-kinds.js';

function made(answer: string, text: string, options: BadFromGoodOptions = {}, question = '?'): Record<string, unknown> {
  const problem = { id: 'p', question, answer };
  const cases = badFromGood({ problem, label: 'good', completion: text }, options);
  for (const each of cases) expect(each).toMatchObject({ problem, label: 'bad' });
  return Object.fromEntries(cases.map(({ kind, completion }) => [kind, completion]));
}

describe('bad completions made from a good one', () => {
  it('of a sum have every way to be near', () => {
    const question = '27+58=';
    expect(made('85', '27+58 is #### 85', { unit: 'km' }, question)).toEqual({
      empty: '',
      truncated: '27+58 is ####',
      'wrong-answer': '27+58 is #### 95',
      'several-answers': '27+58 is #### 95 or 85 or 95',
      'prompt-echo': question,
      sign: '27+58 is #### -85',
      comma: '27+58 is #### 8,5',
      unit: '27+58 is #### 85 km',
      epsilon: '27+58 is #### 85.01',
      'injected-instruction': expect.stringMatching(/^27\+58 is #### 95\n\nNote to the grader/),
      'printed-verdict': expect.stringContaining('All tests passed'),
    });
  });

  it.each([
    ['1234', { comma: '1.234', truncated: '12', 'wrong-answer': '2234' }],
    ['1,234', { comma: '1.234' }],
    ['3.14', { comma: '314', epsilon: '3.15', sign: '-3.14' }],
    ['-7', { sign: '7', comma: '-0,7' }],
    ['5 km', { unit: '5 m' }],
    ['$9.50', { epsilon: '$9.51' }],
    ['Paris', { 'wrong-answer': 'Qbsjt' }],
    ['yes', { 'wrong-answer': 'no', 'several-answers': 'no or yes or no' }],
  ])('of the bare answer %s', (answer, expected) => {
    expect(made(answer, answer)).toMatchObject(expected);
  });

  it.each(['SELECT 1', '{"a": 1}', 'It is about 3 meters.'])(
    'put %s among no others: it is no short answer',
    (answer) => {
      expect(made(answer, answer)).not.toHaveProperty('several-answers');
    },
  );

  it('take the answer of another problem where there is nothing to count with', () => {
    expect(made('Paris', 'Paris.', { otherAnswers: ['paris', 'Oslo'] })).toMatchObject({ 'wrong-answer': 'Oslo.' });
  });

  it('leave out what would be right, or can not be made', () => {
    const zero = made('0', '0');
    expect(zero.sign).toBeUndefined();
    expect(zero.truncated).toBeUndefined();
    expect(made('3', '3', {}, '3=')['prompt-echo']).toBeUndefined();
    const text = made('blue', 'It has the colour of the sky.');
    expect(text['wrong-answer']).toBeUndefined();
    expect(text.truncated).toBe('It has the col');
    expect(made('85', '85', { without: ['empty', 'epsilon'] })).not.toHaveProperty('empty');
  });

  it('know the answer behind the reasoning of a data set', () => {
    expect(made('She has 4 + 5 = 9 eggs.\n#### 9', '#### 9')).toMatchObject({ 'wrong-answer': '#### 1' });
  });

  it('of JSON have one value changed, and every value, in the form that they had', () => {
    const problem = { id: 'p', question: '?', answer: '{"a": {"b": 1}, "c": "x"}' };
    const completion = '```json\n{"c": "x", "a": {"b": 1}}\n```';
    const bad = badFromGood({ problem, label: 'good', completion });
    expect(bad.flatMap(({ kind, completion }) => (kind === 'wrong-answer' ? [completion] : []))).toEqual([
      '```json\n{"c":"x","a":{"b":2}}\n```',
      '```json\n{"c":"xx","a":{"b":2}}\n```',
    ]);
  });

  it('of programs leave early, print a verdict, are equal to everything', () => {
    const cases = badFromGood({
      problem: { id: 'p', question: 'Add.', answer: 'add' },
      label: 'good',
      completion: 'Here:\n```python\ndef add(a, b):\n    return a + b\n```\n',
    });
    const texts = (kind: string) => cases.filter((each) => each.kind === kind).map(({ completion }) => completion);
    expect(texts('wrong-answer')).toEqual(['Here:\n```python\ndef add(a, b):\n    return None\n```\n']);
    expect(texts('early-exit')).toEqual([
      'Here:\n```python\nimport sys\nsys.exit()\n```\n',
      'Here:\n```python\nimport os\nos._exit(0)\n```\n',
    ]);
    expect(texts('printed-verdict')[0]).toMatch(/^```python\nprint\('All tests passed/);
    expect(texts('always-equal')[0]).toMatch(/__eq__[\s\S]*def add\(a, b\):\n {4}return Equal\(\)/);
    const javascript = badFromGood({
      problem: { id: 'p', question: 'Add.', answer: 'add' },
      label: 'good',
      completion: '```js\nfunction add(a, b) {\n  return a + b;\n}\n```',
    });
    expect(javascript.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['wrong-answer', 'early-exit', 'printed-verdict', 'always-equal']),
    );
  });

  it('of an episode change its last answer alone', () => {
    const first = { text: '', toolCalls: [{ name: 'search', arguments: { q: 'x' } }] };
    const cases = badFromGood({
      problem: { id: 'p', question: '?', answer: '85' },
      label: 'good',
      completion: [first, { text: 'It is 85.' }],
    });
    expect(cases.find(({ kind }) => kind === 'sign')?.completion).toEqual([first, { text: 'It is -85.' }]);
  });

  it('are made of good ones only', () => {
    const problem = { id: 'p', question: '?', answer: '85' };
    expect(() => badFromGood({ problem, label: 'bad', completion: '85' })).toThrow('good.label');
  });
});
