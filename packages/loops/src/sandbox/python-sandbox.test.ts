import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rejection } from '../testing/rejection.js';
import { createPythonSandbox, pyodideDirectory } from './python-sandbox.js';
import type { TestingSandbox } from './sandbox.js';

let sandbox: TestingSandbox;
beforeAll(async () => {
  sandbox = await createPythonSandbox({ workers: 2, timeoutMs: 30_000, outputBytes: 4096, memoryMiB: 96 });
}, 120_000);
afterAll(async () => await sandbox.close());

describe('a Python program', () => {
  test('reads its input and files, prints, and its functions are called with values and give values', async () => {
    const code = `
import sys
first = input()
print(first.upper(), sys.stdin.read().strip(), open('data/numbers.txt').read())
print('to stderr', file=sys.stderr)
def same(value): return value
def kinds(): return [2**70, -1, 0.5, float('nan'), (1, 2), {'a': {1: None}}, {3}, b'\\x00\\xff', '\\u00e9\\U0001f600']
def wrong(): raise ValueError('no')
def strange(): return object()
`;
    const given = { text: 'é😀\n"', list: [1, 2.5, null, true], __proto__x: 2n ** 64n };
    const result = await sandbox.run({
      code,
      stdin: 'hé\nrest\n',
      files: { 'data/numbers.txt': '1 2 3' },
      calls: [
        { entry: 'same', args: [given] },
        { entry: 'kinds', args: [] },
        { entry: 'wrong', args: [] },
        { entry: 'strange', args: [] },
        { entry: 'missing', args: [] },
      ],
    });
    expect(result).toMatchObject({ status: 'ok', stdout: 'HÉ rest 1 2 3\n', stderr: 'to stderr\n', isCut: false });
    expect(result.results).toEqual([
      { status: 'ok', value: given },
      {
        status: 'ok',
        value: [
          2n ** 70n,
          -1,
          0.5,
          Number.NaN,
          [1, 2],
          { a: new Map([[1, null]]) },
          new Set([3]),
          Uint8Array.of(0, 255),
          'é😀',
        ],
      },
      { status: 'error', error: { type: 'ValueError', message: 'no' } },
      { status: 'error', error: { type: 'TypeError', message: 'a object can not be returned as a value' } },
      { status: 'error', error: { type: 'NameError', message: "name 'missing' is not defined" } },
    ]);
    expect(result.durationMs).toBeGreaterThan(0);
    expect(result.queueMs).toBeGreaterThan(0);
  });

  test('that fails says how, and what it printed before is kept', async () => {
    const results = await Promise.all(
      ['print(1); raise KeyError(2)', 'def (', 'import sys; sys.exit("bye")', 'exit(0)', 'x = "y" * 10**9'].map(
        (code) => sandbox.run({ code }),
      ),
    );
    const [raised, syntax, exited, clean, memory] = results;
    expect(raised).toMatchObject({ status: 'error', stdout: '1\n', error: { type: 'KeyError', message: '2' } });
    expect(raised!.stderr).toMatch(/^Traceback.*program\.py", line 1.*KeyError: 2\n$/s);
    expect(syntax).toMatchObject({ status: 'error', error: { type: 'SyntaxError' } });
    expect(exited).toMatchObject({ status: 'error', stderr: 'bye\n', error: { type: 'SystemExit' } });
    expect(clean).toMatchObject({ status: 'ok', results: [] });
    expect(memory).toMatchObject({ status: 'out_of_memory' });
  });

  test('that never ends is killed at its deadline, and the next one is not affected', async () => {
    const [endless, next] = await Promise.all([
      sandbox.run({ code: 'print("begun", flush=True)\nwhile True: pass', timeoutMs: 2000 }),
      sandbox.run({ code: 'print(1)' }),
    ]);
    expect(endless).toMatchObject({ status: 'timeout', stdout: 'begun\n' });
    expect(endless.durationMs).toBeGreaterThanOrEqual(2000);
    expect(next).toMatchObject({ status: 'ok', stdout: '1\n' });
  });

  test('is ended by an abort, and one that waits never starts', async () => {
    const abort = new AbortController();
    const running = sandbox.run({ code: 'while True: pass', signal: abort.signal });
    const waiting = Array.from({ length: 3 }, () => sandbox.run({ code: 'while True: pass', signal: abort.signal }));
    abort.abort(new Error('enough'));
    await Promise.all([running, ...waiting].map((each) => expect(each).rejects.toThrow('enough')));
    await expect(sandbox.run({ code: '', signal: abort.signal })).rejects.toThrow('enough');
  });

  test('is refused before it runs where the request is wrong', async () => {
    const wrong = async (program: object, field: string) => {
      const error = await rejection(sandbox.run({ code: '', ...program }));
      expect(error).toMatchObject({ code: 'invalid_argument', details: { field } });
    };
    await wrong({ code: 1 }, 'code');
    await wrong({ timeoutMs: 30_001 }, 'timeoutMs');
    await wrong({ timeoutMs: Number.NaN }, 'timeoutMs');
    await wrong({ files: { '../x': '' } }, 'files');
    await wrong({ files: { '/x': '' } }, 'files');
    await wrong({ calls: [{ entry: 'a.b', args: [] }] }, 'calls[0].entry');
    await wrong({ calls: [{ entry: 'a', args: [() => 1] }] }, 'calls[0].args[0]');
    const cycle: unknown[] = [];
    cycle.push(cycle);
    await wrong({ calls: [{ entry: 'a', args: [cycle] }] }, 'calls[0].args[0]');
  });
});

test('a sandbox for Python says what is missing, and which option is wrong', async () => {
  expect(() => pyodideDirectory('file:///nowhere/program.js')).toThrow(
    expect.objectContaining({ code: 'sandbox_failed', message: expect.stringContaining('npm i pyodide') }),
  );
  for (const options of [
    { workers: 0 },
    { memoryMiB: 8 },
    { timeoutMs: Number.POSITIVE_INFINITY },
    { outputBytes: 1 },
  ]) {
    const error = await rejection(createPythonSandbox(options));
    expect(error).toMatchObject({ code: 'invalid_argument', details: { field: Object.keys(options)[0] } });
  }
});

describe('tests that are statements', () => {
  test('judge values, errors, changed arguments, objects and iterators of the program', async () => {
    const code = `
def add(a, b=0): return a + b
def sort(items): items.sort()
def fail(): raise KeyError('k')
def numbers():
    n = 0
    while True:
        yield n
        n += 1
class Stack:
    def __init__(self): self.items = []
    def push(self, item): self.items.append(item); return self
    def __len__(self): return len(self.items)
`;
    const { status, results } = await sandbox.runTests({
      code,
      entry: ['add', 'sort', 'fail', 'numbers', 'Stack'],
      setup: 'import itertools',
      tests: [
        'assert add(1, b=2) == 3 and add((1,), (2,)) == (1, 2) and type(add(1.0)) is float',
        'items = [3, 1, 2]\nsort(items)\nassert items == [1, 2, 3]',
        'try: fail()\nexcept LookupError: pass\nelse: assert False',
        'assert list(itertools.islice(numbers(), 4)) == [0, 1, 2, 3]',
        'stack = Stack()\nassert len(stack.push(1).push(2)) == 2 and stack.items == [1, 2]',
        'assert add(1, 1) == 3',
        'assert missing() == 1',
      ],
    });
    expect(status).toBe('ok');
    expect(results.slice(0, 5)).toEqual(Array.from({ length: 5 }, () => ({ status: 'passed' })));
    expect(results[5]).toMatchObject({ status: 'failed', error: { type: 'AssertionError' } });
    expect(results[6]).toMatchObject({ status: 'failed', error: { type: 'NameError' } });
  });

  test('that the program never lets end fail, and those before it keep their result', async () => {
    const { status, results } = await sandbox.runTests({
      code: 'def f(n):\n  while n: pass\n  return n',
      entry: ['f'],
      tests: ['assert f(0) == 0', 'assert f(1) == 1', 'assert f(0) == 0'],
      timeoutMs: 1500,
    });
    expect(status).toBe('timeout');
    expect(results.map((each) => each.status)).toEqual(['passed', 'failed', 'failed']);
  });

  test('that can not run are the fault of the tests, not of the program', async () => {
    for (const tests of [{ setup: 'import nothing', tests: ['assert f('] }, { tests: ['while True: pass'] }]) {
      const error = await rejection(
        sandbox.runTests({ code: 'def f(): pass', entry: ['f'], timeoutMs: 1000, ...tests }),
      );
      expect(error).toMatchObject({ code: 'sandbox_failed', details: { field: 'tests' } });
    }
  });
});
