import { LoopwrightError } from '@loopwright/protocol';
import { describe, expect, test } from 'vitest';
import type { Problem } from '../environments/environment.js';
import type { CallResult, Sandbox, SandboxProgram, SandboxResult, TestingSandbox } from '../sandbox/sandbox.js';
import { codeBlock } from './answers/code-block.js';
import { createGrader } from './grader.js';
import { type UnitTests, type UnitTestsOptions, unitTests } from './unit-tests.js';

interface CodeProblem extends Problem {
  readonly tests: UnitTests;
}

type Outcome = Partial<Omit<SandboxResult, 'status'>> & { readonly status: SandboxResult['status'] };

/** A sandbox that answers as told, and keeps what it was asked. */
class FakeSandbox implements TestingSandbox {
  readonly language = 'python';
  readonly asked: SandboxProgram[] = [];
  readonly #outcome: (program: SandboxProgram) => Outcome | Promise<Outcome>;
  constructor(outcome: (program: SandboxProgram) => Outcome | Promise<Outcome>) {
    this.#outcome = outcome;
  }
  async run(program: SandboxProgram): Promise<SandboxResult> {
    this.asked.push(program);
    const base = { stdout: '', stderr: '', isCut: false, results: [], durationMs: 1, queueMs: 1 };
    return { ...base, ...(await this.#outcome(program)) } as SandboxResult; // true: the tests give whole outcomes
  }
  runTests: TestingSandbox['runTests'] = async ({ tests }) => ({
    status: 'ok',
    stdout: '',
    stderr: '',
    isCut: false,
    durationMs: 1,
    queueMs: 1,
    results: tests.map((each) =>
      each === 'pass' ? { status: 'passed' } : { status: 'failed', error: { type: 'AssertionError', message: '' } },
    ),
  });
  async close(): Promise<void> {}
  async [Symbol.asyncDispose](): Promise<void> {}
}

const value = (of: number): CallResult => ({ status: 'ok', value: of });

async function graded(
  sandbox: Sandbox,
  tests: UnitTests,
  options: Partial<UnitTestsOptions<CodeProblem>> & { readonly text?: string } = {},
) {
  const { text = 'Here:\n```python\ncode\n```', ...more } = options;
  const grade = createGrader<CodeProblem>({
    components: [unitTests({ sandbox, tests: (problem) => problem.tests, ...more })],
  });
  const problem = { id: '1', question: 'q', answer: 'a', tests };
  const { components, ...whole } = await grade({ problem, text, stopReason: 'stop' });
  return { ...whole, trace: components?.[0]?.status === 'ok' ? components[0].trace : undefined };
}

describe('unit tests by input and output', () => {
  const cases = [
    { stdin: '1', stdout: '2\n' },
    { stdin: '2', stdout: 'a \r\nb' },
  ];

  test('compare what is printed outside of the sandbox, but for blanks at ends', async () => {
    const sandbox = new FakeSandbox(({ stdin }) => ({ status: 'ok', stdout: stdin === '1' ? '2' : 'a\nb\n\n' }));
    expect(await graded(sandbox, { type: 'stdio', cases })).toMatchObject({
      status: 'ok',
      reward: 1,
      trace: '2 of 2 passed',
    });
    expect(sandbox.asked.map(({ code, stdin }) => [code, stdin])).toEqual([
      ['code', '1'],
      ['code', '2'],
    ]);
    expect(JSON.stringify(sandbox.asked)).not.toContain('stdout');
  });

  test('fail for the right output with an error, a cut output, and a deadline', async () => {
    for (const outcome of [
      { status: 'error', stdout: '2', error: { type: 'ValueError', message: '' } },
      { status: 'ok', stdout: '2', isCut: true },
      { status: 'timeout', stdout: '2' },
      { status: 'killed', stdout: '2', reason: '' },
      { status: 'ok', stdout: ' 2' },
    ] as const) {
      const sandbox = new FakeSandbox(() => outcome);
      expect(await graded(sandbox, { type: 'stdio', cases })).toMatchObject({ status: 'ok', reward: 0 });
      // all or nothing: the first failure is enough
      expect(sandbox.asked).toHaveLength(1);
    }
  });

  test('give the share that passes where that is asked for', async () => {
    const sandbox = new FakeSandbox(({ stdin }) => ({ status: 'ok', stdout: stdin === '1' ? 'no' : 'a\nb' }));
    const grade = await graded(sandbox, { type: 'stdio', cases }, { score: 'share' });
    expect(grade).toMatchObject({ reward: 0.5, trace: '1 of 2 passed; first failure: another output than expected' });
  });
});

describe('unit tests by calls', () => {
  const cases = [1, 2].map((n) => ({ entry: 'f', args: [n], expected: n * n }));

  test('compare values outside, and never tell what is expected', async () => {
    const sandbox = new FakeSandbox(() => ({ status: 'ok', results: [value(1), value(4)] }));
    expect(await graded(sandbox, { type: 'calls', cases })).toMatchObject({ reward: 1 });
    expect(sandbox.asked[0]!.calls).toEqual([
      { entry: 'f', args: [1] },
      { entry: 'f', args: [2] },
    ]);
  });

  test('count what was answered before a program ended', async () => {
    const sandbox = new FakeSandbox(() => ({ status: 'timeout', results: [value(1)] }));
    const grade = await graded(sandbox, { type: 'calls', cases }, { score: 'share' });
    expect(grade).toMatchObject({ reward: 0.5, trace: '1 of 2 passed; first failure: f: timeout' });
  });
});

test('unit tests by statements count what passed, and want a sandbox that runs them', async () => {
  const sandbox = new FakeSandbox(() => ({ status: 'ok' }));
  const suite = { type: 'statements', entry: ['f'], tests: ['pass', 'fail'] } as const;
  expect(await graded(sandbox, suite)).toMatchObject({ reward: 0 });
  expect(await graded(sandbox, suite, { score: 'share' })).toMatchObject({ reward: 0.5 });
  const { language, run, close } = sandbox;
  const plain: Sandbox = { language, run, close, [Symbol.asyncDispose]: close };
  expect(await graded(plain, suite)).toMatchObject({ status: 'grader_error', error: { code: 'invalid_argument' } });
});

test('a sandbox that fails, and a problem without tests, are errors of the grader and no reward', async () => {
  const error = new LoopwrightError({ code: 'sandbox_failed', message: 'down' });
  const broken = new FakeSandbox(() => Promise.reject(error));
  const cases = [{ stdin: '', stdout: '' }];
  expect(await graded(broken, { type: 'stdio', cases })).toMatchObject({ status: 'grader_error', error });
  const sandbox = new FakeSandbox(() => ({ status: 'ok' }));
  const none = await graded(sandbox, { type: 'stdio', cases: [] });
  expect(none).toMatchObject({ status: 'grader_error', error: { details: { field: 'tests(problem)' } } });
});

test('an answer without a complete code block is unparsed, unless told where its program is', async () => {
  const sandbox = new FakeSandbox(() => ({ status: 'ok' }));
  const suite = { type: 'stdio', cases: [{ stdin: '', stdout: '' }] } as const;
  expect(await graded(sandbox, suite, { text: '```python\ncut' })).toMatchObject({ status: 'unparsed', reward: 0 });
  expect(sandbox.asked).toEqual([]);
  expect(await graded(sandbox, suite, { text: 'x', program: ({ text }) => text })).toMatchObject({ reward: 1 });
});

test('the program is the last closed block of its language', () => {
  const python = (text: string) => codeBlock(text, 'python');
  expect(python('```python\na\n```\n```\nb\nc\n```\n```js\nd\n```')).toBe('b\nc');
  expect(python('~~~~py\r\n```\r\nx\r\n```\r\n~~~~\r\n')).toBe('```\nx\n```');
  expect(python('```python\na\n```python\nb\n```')).toBe('a\n```python\nb');
  expect(python('`` ```x``` ``')).toBe(null);
  expect(python('``` a `b` ```\n```\nx\n```')).toBe('x');
  expect(codeBlock('```javascript title="x"\nd\n```', 'javascript')).toBe('d');
  expect(python('')).toBe(null);
});
