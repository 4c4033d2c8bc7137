/** Rows in HumanEval's form, judged in the Python sandbox. The rows are made up; two need a helper of the prompt. */
import { afterAll, describe, expect, it } from 'vitest';
import type { Problem } from '../environments/environment.js';
import { createPythonSandbox } from '../sandbox/python-sandbox.js';
import { createGrader } from './grader.js';
import { type HumanEvalRow, humanEvalProgram, humanEvalTests } from './human-eval.js';
import { unitTests } from './unit-tests.js';

const largest: HumanEvalRow = {
  prompt: 'from typing import List\n\n\ndef largest(numbers: List[int]) -> int:\n    """ The largest. """\n',
  entry_point: 'largest',
  test: "\nMETADATA = {'author': 'x'}\n\ndef check(candidate):\n    assert candidate([1, 3, 2]) == 3\n    assert candidate([-1]) == -1\n",
};
const decode: HumanEvalRow = {
  prompt:
    'def encode(s: str):\n    """ Turned round. """\n    return s[::-1]\n\n\ndef decode(s: str):\n    """ The text that encode was given. """\n',
  entry_point: 'decode',
  test: "\ndef check(candidate):\n    for text in ['', 'abc']:\n        assert candidate(encode(text)) == text\n",
};

describe('HumanEval rows in the Python sandbox', () => {
  const opened = createPythonSandbox({ workers: 2, timeoutMs: 20_000 });
  afterAll(async () => (await opened).close());

  async function reward(row: HumanEvalRow, text: string, isCompletion = false): Promise<unknown> {
    const sandbox = await opened;
    const grade = createGrader<Problem>({
      components: [
        unitTests<Problem>({
          sandbox,
          tests: () => humanEvalTests(row),
          program: (answer) => humanEvalProgram(row, answer.text, { isCompletion }),
        }),
      ],
    });
    const judged = await grade({ problem: { id: '1', question: '', answer: '' }, text, stopReason: 'stop' });
    return 'reward' in judged ? [judged.status, judged.reward] : judged.status;
  }
  const fenced = (code: string) => `\`\`\`python\n${code}\n\`\`\``;

  it.each([
    [
      'a whole function without its imports',
      largest,
      fenced('def largest(numbers: List[int]):\n    return max(numbers)'),
    ],
    ['a body alone', largest, fenced('    return max(numbers)')],
    ['a function whose check needs a helper', decode, fenced('def decode(s):\n    return s[::-1]')],
  ])('passes %s', { timeout: 120_000 }, async (_, row, text) => {
    expect(await reward(row, text)).toEqual(['ok', 1]);
  });

  it('passes what a base model goes on with', { timeout: 120_000 }, async () => {
    expect(await reward(largest, '    return max(numbers)\n', true)).toEqual(['ok', 1]);
  });

  it.each([
    ['a broken body', largest, '    return None'],
    ['a helper that is replaced', decode, 'def encode(s):\n    return s\ndef decode(s):\n    return s'],
    ['source that does not parse', largest, 'def largest(numbers:'],
  ])('fails %s', { timeout: 120_000 }, async (_, row, code) => {
    expect(await reward(row, fenced(code))).toEqual(['ok', 0]);
  });

  it('says that there is no program where an answer has no block', { timeout: 120_000 }, async () => {
    expect(await reward(largest, 'I do not know.')).toEqual(['unparsed', 0]);
  });
});

it('refuses rows of another form', () => {
  const wrong = (row: object) => () => humanEvalTests({ ...largest, ...row });
  expect(wrong({ test: undefined })).toThrow('test: expected text, got undefined');
  expect(wrong({ entry_point: 'a(b' })).toThrow('entry_point: expected the name of a function');
  expect(wrong({ entry_point: 'smallest' })).toThrow('prompt: expected code that defines entry_point');
});
