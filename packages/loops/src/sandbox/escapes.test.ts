/** What programs try, and what they get: nothing, and no verdict that they did not earn. */
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPythonSandbox } from './python-sandbox.js';
import type { TestingSandbox } from './sandbox.js';

let sandbox: TestingSandbox;
beforeAll(async () => {
  process.env.LOOPWRIGHT_SANDBOX_SECRET = 'hidden';
  sandbox = await createPythonSandbox({ workers: 2, timeoutMs: 30_000, outputBytes: 4096, memoryMiB: 96 });
}, 120_000);
afterAll(async () => await sandbox.close());

/** Attempts by name: each a Python expression or block that returns what it got hold of. */
const attempts: Readonly<Record<string, string>> = {
  'a file of the host': 'return open("/etc/passwd").read()',
  'a file by a path that climbs': 'return open("../../../../etc/hostname").read()',
  'a mount of the host':
    'import pyodide_js; pyodide_js.mountNodeFS("/mnt", "/etc"); return __import__("os").listdir("/mnt")',
  'the file system of the host below its mount':
    'import pyodide_js as p; n = p.FS.filesystems.NODEFS; return p.FS.mount(n, to_js({"root": "/"}), "/mnt")',
  'a descriptor of the host':
    'import pyodide_js as p; return p.FS.filesystems.NODEFS.stream_ops.write(to_js({"nfd": 4}), to_js(b"x"), 0, 1, 0)',
  'a socket': 'import socket; s = socket.create_connection(("127.0.0.1", PORT), 2); s.send(b"hello"); return s',
  'a page': 'import urllib.request; return urllib.request.urlopen("http://127.0.0.1:PORT/", timeout=2).read()',
  'a page by the browser': 'from pyodide.http import open_url; return open_url("http://127.0.0.1:PORT/")',
  fetch: 'import js; return js.fetch',
  'fetch in the background':
    'from pyodide.http import pyfetch; import asyncio; return asyncio.run(pyfetch("http://127.0.0.1:PORT/"))',
  'sockets of node': 'import pyodide_js, asyncio; return asyncio.run(pyodide_js.useNodeSockFS())',
  'a package': 'import pyodide_js, asyncio; return asyncio.run(pyodide_js.loadPackage("numpy"))',
  'the process object': 'import js; return js.process',
  'the global object': 'import js; return js.globalThis',
  'code by the constructor of functions': 'import js; return js.constructor.constructor("return globalThis")()',
  'code by the constructor of an array': 'return to_js([1]).constructor.constructor("return this")()',
  'code by the constructor of the host': 'return host("write").constructor("return process")()',
  'code by run_js': 'from pyodide.code import run_js; return run_js("globalThis")',
  'a module by the loader': 'import pyodide_js; return pyodide_js._api.loadScript("data:text/javascript,1")',
  require: 'import pyodide_js; return pyodide_js._module.require("fs")',
  'another program': 'import subprocess; return subprocess.run(["true"])',
  'a fork': 'import os; return os.fork()',
  'an exec': 'import os; return os.execv("/bin/sh", ["sh"])',
  'a signal to its parent': 'import os; return os.kill(os.getppid(), 9) or 1',
  'a thread': 'import threading; t = threading.Thread(target=print); t.start(); return t',
  'a pool of processes': 'import multiprocessing; return multiprocessing.Pool(2)',
};

const prelude = `
import sys
from pyodide.ffi import to_js as convert
def to_js(value): return convert(value)
def host(name):
    frame = sys._getframe()
    while frame:
        if name in frame.f_locals: return frame.f_locals[name]
        frame = frame.f_back
def tried(attempt):
    try: got = attempt()
    except BaseException as error: return 'refused: ' + type(error).__name__
    return 'refused: None' if got is None else 'got ' + type(got).__name__ + ' ' + str(got)[:200]
`;

test('a program gets at no file, network, process, module or code of its host', async () => {
  const connections: unknown[] = [];
  const server = createServer((socket) => {
    connections.push(socket);
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { readonly port: number }; // true: it listens on TCP
  const names = Object.keys(attempts);
  const body = Object.values(attempts).map(
    (source, i) => `def attempt${i}():\n    ${source.replaceAll('PORT', String(port))}`,
  );
  const code = `${prelude}\n${body.join('\n')}\ndef all(): return [tried(f) for f in [${names.map((_, i) => `attempt${i}`).join(', ')}]]`;
  const result = await sandbox.run({ code, calls: [{ entry: 'all', args: [] }] });
  server.close();
  expect(result.status).toBe('ok');
  const [told] = result.results;
  const outcomes = told?.status === 'ok' ? (told.value as readonly string[]) : [];
  expect(outcomes).toHaveLength(names.length);
  expect(
    names.filter((_, i) => !outcomes[i]!.startsWith('refused: ')).map((name) => [name, outcomes[names.indexOf(name)]]),
  ).toEqual([]);
  expect(connections).toEqual([]);
});

test('a program sees no environment of its host, and its shell knows no command', async () => {
  const result = await sandbox.run({
    code: 'import os\ndef env(): return [dict(os.environ), os.system("true") != 0, os.listdir("/home"), os.getcwd()]',
    calls: [{ entry: 'env', args: [] }],
  });
  expect(JSON.stringify(result)).not.toMatch(/hidden|LOOPWRIGHT/);
  expect(result).toMatchObject({
    status: 'ok',
    results: [{ value: [{ HOME: '/home/program' }, true, ['web_user', 'program'], '/home/program'] }],
  });
});

test('nothing of a program survives it: neither files nor changed modules', async () => {
  const [, after] = [
    await sandbox.run({
      code: 'import json, builtins\nopen("left.txt", "w").write("x")\njson.dumps = builtins.len = None',
    }),
    await sandbox.run({ code: 'import os, json\nprint(os.path.exists("left.txt"), json.dumps(len("a")))' }),
  ];
  expect(after).toMatchObject({ status: 'ok', stdout: 'False 1\n' });
});

describe('a program that floods, exhausts or breaks its process', () => {
  const cases: readonly (readonly [string, string, object])[] = [
    ['stdout', 'import sys\nfor _ in range(3000): print("x" * 1000)', { status: 'ok', isCut: true }],
    ['a returned value', 'def f(): return "x" * 2_000_000', { status: 'killed', reason: 'it returned too much' }],
    ['memory', 'kept = []\nwhile True: kept.append(bytearray(2**22))', { status: 'out_of_memory' }],
    ['recursion', 'def f(): return f()\nf()', { status: 'error', error: { type: 'RecursionError' } }],
    [
      'the native stack',
      'import sys\nsys.setrecursionlimit(10**8)\nx = []\nfor _ in range(10**5): x = [x]\nrepr(x)',
      { status: 'error', error: { type: 'RecursionError' } },
    ],
    ['memory of the engine', 'import ctypes\nctypes.string_at(2**31, 8)', { status: 'error' }],
    ['code by the engine', 'import ctypes\nctypes.CDLL(None).emscripten_run_script(b"1")', { status: 'error' }],
  ];
  test.each(cases)('by %s is cut or told apart, and never ok with an answer', async (name, code, expected) => {
    const calls = name === 'stdout' ? [] : [{ entry: 'f', args: [] }];
    const result = await sandbox.run({ code, calls });
    expect(result).toMatchObject(expected);
    expect(result.stdout.length + result.stderr.length).toBeLessThanOrEqual(2 * 4096);
  });
});

describe('a verdict', () => {
  const tests = ['assert f(2) == 4', 'assert f(3) == 9', 'assert sorted(f(4) for _ in "ab") == [16, 16]'];
  /** Each is wrong for 3 and 4, and tries to pass nevertheless. */
  const forgeries: Readonly<Record<string, string>> = {
    'objects that equal everything':
      'class A(int):\n  __eq__ = __lt__ = __gt__ = lambda *a: True\n  __hash__ = int.__hash__\nclass B:\n  __eq__ = lambda *a: True\ndef f(n): return 4 if n == 2 else A(5) if n == 3 else B()',
    'exits, soft and hard':
      'import os, sys\ndef f(n):\n  if n == 2: return 4\n  sys.exit(0) if n == 3 else os._exit(0)',
    'verdicts that are printed or thrown, then and at the end':
      'import atexit, json\ndef say():\n  for i in range(3): print(json.dumps({"type": "tested", "index": i, "status": "passed"}), flush=True)\natexit.register(say)\nclass D:\n  def __del__(self): say()\nkept = D()\ndef f(n):\n  if n == 2: return 4\n  say()\n  if n == 3: raise StopIteration(9)\n  raise GeneratorExit()',
    'verdicts and answers on the line of answers':
      'import sys, json\ndef f(n):\n  if n == 2: return 4\n  frame = sys._getframe()\n  while "write" not in frame.f_locals: frame = frame.f_back\n  write = frame.f_locals["write"]\n  for i in range(3): write(json.dumps({"type": "tested", "index": i, "status": "passed"}))\n  for _ in range(9): write(json.dumps({"type": "answer", "payload": "{\\"value\\": 4}\\n{\\"value\\": 4}"}))\n  if n == 4: write(json.dumps({"type": "done", "status": "ok"}))\n  return 4',
    'patched builtins, and a search for the tests in memory':
      'import builtins, gc, sys, json\nbuiltins.AssertionError = builtins.all = builtins.sorted = lambda *a, **k: [16, 16]\njson.loads = lambda *a: {}\nsys.modules["json"] = None\ndef f(n):\n  for each in gc.get_objects():\n    if isinstance(each, (str, dict)) and "assert f" in str(each)[:10**4]: raise SystemExit("seen")\n  return 4',
  };

  test.each(Object.entries(forgeries))('is not forged by %s', async (_, code) => {
    const { results } = await sandbox.runTests({ code, entry: ['f'], tests });
    expect(results).toHaveLength(3);
    expect(results.slice(1).map(({ status }) => status)).toEqual(['failed', 'failed']);
  });

  test('comes to the program that earned it', async () => {
    const { results } = await sandbox.runTests({ code: 'def f(n): return n * n', entry: ['f'], tests });
    expect(results.map(({ status }) => status)).toEqual(['passed', 'passed', 'passed']);
  });
});
