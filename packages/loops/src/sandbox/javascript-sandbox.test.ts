import { afterAll, beforeAll, expect, test } from 'vitest';
import { rejection } from '../testing/rejection.js';
import { createJavaScriptSandbox } from './javascript-sandbox.js';
import type { Sandbox } from './sandbox.js';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await createJavaScriptSandbox({ workers: 2, timeoutMs: 20_000, outputBytes: 4096, memoryMiB: 64 });
});
afterAll(async () => await sandbox.close());

test('a JavaScript program reads, prints, and its functions are called with values and give values', async () => {
  const code = `
const first = readline();
console.log(first.toUpperCase(), require('fs').readFileSync(0).trim(), require('fs').readFileSync('data.txt', 'utf8'), { a: [1, 'x'] });
console.error('to stderr');
const same = (value) => value;
async function later() { await null; return [2n ** 70n, NaN, -1.5, new Map([[1, new Set(['é'])]]), Uint8Array.of(255), undefined]; }
function wrong() { throw new TypeError('no'); }
const strange = () => () => 1;
const never = () => new Promise(() => {});
`;
  const given = { text: 'é😀\n"', list: [1, 2.5, null, true], big: 2n ** 64n };
  const result = await sandbox.run({
    code,
    stdin: 'hé\nrest\n',
    files: { 'data.txt': '1 2 3' },
    calls: ['same', 'later', 'wrong', 'strange', 'never', 'missing'].map((entry) => ({ entry, args: [given] })),
  });
  expect(result).toMatchObject({
    status: 'ok',
    stdout: 'HÉ rest 1 2 3 { a: [ 1, "x" ] }\n',
    stderr: 'to stderr\n',
    isCut: false,
  });
  expect(result.results).toEqual([
    { status: 'ok', value: given },
    {
      status: 'ok',
      value: [2n ** 70n, Number.NaN, -1.5, new Map([[1, new Set(['é'])]]), Uint8Array.of(255), null],
    },
    { status: 'error', error: { type: 'TypeError', message: 'no' } },
    { status: 'error', error: { type: 'TypeError', message: 'a function can not be returned as a value' } },
    { status: 'error', error: { type: 'Error', message: 'a promise that never settles' } },
    { status: 'error', error: { type: 'ReferenceError', message: 'missing is not defined' } },
  ]);
});

const endings: readonly (readonly [string, string, object])[] = [
  ['throws', 'print(1); throw new RangeError("r")', { status: 'error', stdout: '1\n', error: { type: 'RangeError' } }],
  ['throws no error', 'throw { toString: null }', { status: 'error' }],
  ['does not parse', '}{', { status: 'error', error: { type: 'SyntaxError' } }],
  ['recurses', 'const f = () => f(); f()', { status: 'error', error: { type: 'RangeError' } }],
  ['fills its memory', 'const a = []; for (;;) a.push(new Uint8Array(2 ** 20).fill(1))', { status: 'out_of_memory' }],
  ['fills it with text', 'let s = "x"; for (;;) s += s + 1', { status: /error|out_of_memory/ }],
  ['floods', 'for (let i = 0; i < 3000; i++) print("x".repeat(1000))', { status: 'ok', isCut: true }],
  ['never ends', 'print("begun"); for (;;);', { status: 'timeout', stdout: 'begun\n' }],
];
test.each(endings)('a JavaScript program that %s is told apart', async (name, code, expected) => {
  const result = await sandbox.run({ code, ...(name === 'never ends' ? { timeoutMs: 2000 } : {}) });
  const { status, ...more } = expected as { status: string | RegExp };
  expect(result.status).toMatch(status);
  expect(result).toMatchObject(more);
  expect(result.stdout.length + result.stderr.length).toBeLessThanOrEqual(2 * 4096);
});

test('a JavaScript program gets at nothing of its host', async () => {
  const code = `
const attempts = {
  process: () => process, fetch: () => fetch, WebSocket: () => WebSocket, XMLHttpRequest: () => XMLHttpRequest,
  Deno: () => Deno, Worker: () => Worker, std: () => std, os: () => os, WebAssembly: () => WebAssembly, setTimeout: () => setTimeout,
  child: () => require('child_process'), net: () => require('node:net'), passwd: () => require('fs').readFileSync('/etc/passwd'),
  climb: () => require('fs').readFileSync('../../etc/passwd'), write: () => require('fs').writeFileSync.call,
  made: () => Function('return process')(), evaluated: () => (0, eval)('require("os").hostname()'),
  host: () => console.log.constructor('return process')(), print: () => print.constructor.constructor('return globalThis.process.pid')(),
};
const all = () => Object.entries(attempts).flatMap(([name, attempt]) => { try { attempt(); return [name]; } catch { return []; } });
const imported = () => import('node:fs').then(() => 'got', () => 'refused');
const names = () => Object.getOwnPropertyNames(globalThis).filter((name) => /^[a-z]/.test(name)).sort();
`;
  const calls = ['all', 'imported', 'names'].map((entry) => ({ entry, args: [] }));
  const { results } = await sandbox.run({ code, calls });
  expect(results).toEqual([
    { status: 'ok', value: [] },
    { status: 'ok', value: 'refused' },
    { status: 'ok', value: expect.any(Array) },
  ]);
  // The language's own, and the four that the guide names.
  const [, , names] = results;
  const language = [
    'decodeURI',
    'decodeURIComponent',
    'encodeURI',
    'encodeURIComponent',
    'escape',
    'eval',
    'globalThis',
    'isFinite',
    'isNaN',
    'parseFloat',
    'parseInt',
    'undefined',
    'unescape',
  ];
  const own = (names?.status === 'ok' ? (names.value as string[]) : []).filter((name) => !language.includes(name));
  expect(own).toEqual(['console', 'performance', 'print', 'queueMicrotask', 'readline', 'require']);
});

test('a JavaScript program that replaces what carries its answers changes its own alone', async () => {
  const code = `
Object.entries = JSON.stringify = Array.from = () => 'forged'; Map.prototype.get = null;
globalThis.console = null;
const f = (n) => n + 1;
`;
  const call = { entry: 'f', args: [1] };
  expect(await sandbox.run({ code, calls: [call] })).toMatchObject({ results: [{ value: 2 }] });
  expect(await sandbox.run({ code: 'const f = (n) => [n]', calls: [call] })).toMatchObject({
    results: [{ value: [1] }],
  });
});

test('a sandbox that is closed ends what runs and what waits, and takes nothing more', async () => {
  const closed = await createJavaScriptSandbox({ workers: 1 });
  const runs = [1, 2].map(() => rejection(closed.run({ code: 'for (;;);' })));
  await closed.close();
  await closed.close();
  runs.push(rejection(closed.run({ code: '' })));
  for (const error of await Promise.all(runs)) expect(error).toMatchObject({ code: 'disposed' });
});
