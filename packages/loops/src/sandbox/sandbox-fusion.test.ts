import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rejection } from '../testing/rejection.js';
import { createPythonSandbox } from './python-sandbox.js';
import type { TestingSandbox } from './sandbox.js';
import { sandboxFusion } from './sandbox-fusion.js';

interface RunCode {
  readonly code: string;
  readonly language: string;
  readonly stdin?: string;
  readonly run_timeout: number;
  readonly memory_limit_MB?: number;
  readonly files: Readonly<Record<string, string>>;
  readonly fetch_files: readonly string[];
}

/** What the stand-in answers instead of running; by a path, so that tests may run side by side. */
const canned = new Map<string, { readonly status?: number; readonly body: string }>();
const requests: { readonly path: string; readonly headers: IncomingMessage['headers']; readonly body: RunCode }[] = [];
let engine: TestingSandbox;
let server: Server;
let url = '';

/** Stands in for a server of the documented API: Python runs in our own sandbox, Node in a plain process. */
beforeAll(async () => {
  engine = await createPythonSandbox({ workers: 1, timeoutMs: 20_000 });
  server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = JSON.parse(Buffer.concat(chunks).toString()) as RunCode;
      const path = request.url ?? '';
      requests.push({ path, headers: request.headers, body });
      const ready = canned.get(path);
      response.statusCode = ready?.status ?? 200;
      response.end(ready?.body ?? JSON.stringify(await (body.language === 'nodejs' ? runNode(body) : runPython(body))));
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as { readonly port: number }).port}`; // true: it listens on TCP
}, 120_000);
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await engine.close();
});

const answer = (run: object, files: object = {}) => ({
  status: 'return_code' in run && run.return_code === 0 ? 'Success' : 'Failed',
  message: '',
  compile_result: null,
  run_result: { status: 'Finished', execution_time: 0.5, stdout: '', stderr: '', ...run },
  executor_pod_name: null,
  files,
});

async function runPython({ code, stdin = '', run_timeout, files, fetch_files }: RunCode): Promise<object> {
  const texts = Object.fromEntries(Object.entries(files).map(([name, text]) => [name, Buffer.from(text, 'base64')]));
  const result = await engine.run({
    code: `${code}\ndef fetch_one(name): return open(name, 'rb').read()`,
    stdin,
    files: texts,
    calls: fetch_files.map((name) => ({ entry: 'fetch_one', args: [name] })),
    timeoutMs: run_timeout * 1000,
  });
  const { stdout, stderr } = result;
  if (result.status === 'timeout') return answer({ status: 'TimeLimitExceeded', return_code: null, stdout, stderr });
  const fetched = result.results.flatMap((each, i) =>
    each.status === 'ok' ? [[fetch_files[i]!, Buffer.from(each.value as Uint8Array).toString('base64')]] : [],
  );
  return answer({ return_code: result.status === 'ok' ? 0 : 1, stdout, stderr }, Object.fromEntries(fetched));
}

async function runNode({ code, stdin = '', fetch_files }: RunCode): Promise<object> {
  const directory = await mkdtemp(path.join(tmpdir(), 'fusion-'));
  try {
    const file = path.join(directory, 'main.cjs');
    await writeFile(file, code);
    const run = await new Promise<object>((resolve) => {
      const child = execFile(process.execPath, [file], { cwd: directory }, (error, stdout, stderr) =>
        resolve({ return_code: error === null ? 0 : 1, stdout, stderr }),
      );
      child.stdin?.end(stdin);
    });
    const files = fetch_files.map(
      async (name) => [name, await readFile(path.join(directory, name), 'base64')] as const,
    );
    return answer(run, Object.fromEntries(await Promise.all(files)));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

describe('SandboxFusion', () => {
  test('runs a program with input and files, by the request that its API documents', async () => {
    await using sandbox = sandboxFusion({ url: `${url}/`, memoryMiB: 512, headers: { authorization: 'Bearer k' } });
    const code = 'print(input(), open("a/é.txt").read())';
    const result = await sandbox.run({ code, stdin: 'x\n', files: { 'a/é.txt': 'ü' }, timeoutMs: 1500 });
    expect(result).toMatchObject({ status: 'ok', stdout: 'x ü\n', results: [], durationMs: 500 });
    expect(requests.at(-1)).toMatchObject({
      path: '/run_code',
      headers: { 'content-type': 'application/json', authorization: 'Bearer k' },
    });
    expect(requests.at(-1)!.body).toEqual({
      language: 'python',
      code,
      stdin: 'x\n',
      run_timeout: 1.5,
      memory_limit_MB: 512,
      files: { 'a/é.txt': Buffer.from('ü').toString('base64') },
      fetch_files: [],
    });
  });

  test('calls functions of a Python program, and fetches what they gave', async () => {
    await using sandbox = sandboxFusion({ url });
    const code =
      'print("printed")\ndef f(n, text="é\\n"): return [n * 2**60, text, {1: (n,)}]\ndef g(*a): raise KeyError("k")';
    const calls = ['f', 'g', 'h'].map((entry) => ({ entry, args: [3, '"\\\u2028😀'] }));
    const result = await sandbox.run({ code, calls });
    expect(result).toMatchObject({ status: 'ok', stdout: 'printed\n' });
    expect(result.results).toEqual([
      { status: 'ok', value: [3n * 2n ** 60n, '"\\\u2028😀', new Map([[1, [3]]])] },
      { status: 'error', error: { type: 'KeyError', message: "'k'" } },
      { status: 'error', error: { type: 'NameError', message: "name 'h' is not defined" } },
    ]);
  });

  test('calls functions of a JavaScript program', async () => {
    await using sandbox = sandboxFusion({ url, language: 'javascript' });
    const code = 'const f = async (n) => new Map([[n, 2n ** 70n]]);\nfunction g() { throw new TypeError("t"); }';
    const { status, results } = await sandbox.run({ code, calls: ['f', 'g'].map((entry) => ({ entry, args: [1] })) });
    expect(status).toBe('ok');
    expect(results).toEqual([
      { status: 'ok', value: new Map([[1, 2n ** 70n]]) },
      { status: 'error', error: { type: 'TypeError', message: 't' } },
    ]);
  });

  test('tells how a program ended, as the answers say', async () => {
    const endings: readonly (readonly [object, object])[] = [
      [answer({ status: 'TimeLimitExceeded', return_code: null }), { status: 'timeout' }],
      [
        answer({ return_code: 1, stderr: 'Traceback\nValueError: x\n' }),
        { status: 'error', error: { type: 'ValueError', message: 'x' } },
      ],
      [answer({ return_code: 1, stderr: 'MemoryError\n' }), { status: 'out_of_memory' }],
      [answer({ return_code: 3 }), { status: 'error', error: { type: 'ExitCode' } }],
      [answer({ return_code: -9 }), { status: 'killed' }],
      [
        {
          ...answer({}),
          run_result: null,
          compile_result: { status: 'Finished', return_code: 1, stderr: 'SyntaxError: s' },
        },
        { status: 'error', error: { type: 'SyntaxError' } },
      ],
      [answer({ return_code: 0, stdout: 'x'.repeat(2000) }), { status: 'ok', stdout: 'x'.repeat(1024), isCut: true }],
    ];
    for (const [i, [given, expected]] of endings.entries()) {
      canned.set(`/ending${i}/run_code`, { body: JSON.stringify(given) });
      await using sandbox = sandboxFusion({ url: `${url}/ending${i}`, outputBytes: 1024 });
      expect(await sandbox.run({ code: '' })).toMatchObject(expected);
    }
    canned.set('/unanswered/run_code', { body: JSON.stringify(answer({ return_code: 0 }, { other: '' })) });
    await using sandbox = sandboxFusion({ url: `${url}/unanswered` });
    expect(await sandbox.run({ code: '', calls: [{ entry: 'f', args: [] }] })).toMatchObject({ status: 'killed' });
  });

  test('a server that fails is an error of the sandbox, never a result, and quotes no program', async () => {
    const failures: readonly { readonly status?: number; readonly body: string }[] = [
      { status: 500, body: 'secret program' },
      { status: 404, body: '{}' },
      { body: 'no json' },
      { body: '{}' },
      { body: '[]' },
      { body: JSON.stringify({ status: 'SandboxError', message: 'exception on running code secret program' }) },
      { body: JSON.stringify({ status: 'Success', run_result: null }) },
      { body: JSON.stringify({ status: 'Success', run_result: { status: 'Fine' } }) },
      { body: JSON.stringify({ status: 'Success', run_result: { status: 'Finished' } }) },
      { body: JSON.stringify(answer({ status: 'Error', return_code: 0 })) },
      { body: JSON.stringify(answer({ return_code: 0 }, { f: '*' })) },
    ];
    for (const [i, failure] of failures.entries()) {
      canned.set(`/failure${i}/run_code`, failure);
      await using sandbox = sandboxFusion({ url: `${url}/failure${i}` });
      const error = await rejection(sandbox.run({ code: 'secret program' }));
      expect(error).toMatchObject({ code: 'sandbox_failed', details: { field: 'url' } });
      expect(JSON.stringify(error) + String(error.cause)).not.toContain('secret');
    }
    await using nobody = sandboxFusion({ url: 'http://127.0.0.1:1' });
    expect(await rejection(nobody.run({ code: '' }))).toMatchObject({ code: 'sandbox_failed' });
  });

  test('so many requests at a time, those aborted or waiting at its close are told', async () => {
    let under = 0;
    let most = 0;
    const waiting: (() => void)[] = [];
    const fetch: typeof globalThis.fetch = async (_, init) => {
      most = Math.max(most, ++under);
      await new Promise<void>((resolve, reject) => {
        waiting.push(resolve);
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason));
      });
      under--;
      return Response.json(answer({ return_code: 0 }));
    };
    const sandbox = sandboxFusion({ url, concurrency: 2, fetch });
    const abort = new AbortController();
    const [first, second, third] = [1, 2, 3].map(() => sandbox.run({ code: '' }));
    const aborted = sandbox.run({ code: '', signal: abort.signal });
    abort.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
    await expect.poll(() => waiting.length).toBe(2);
    waiting[0]!();
    expect(await first).toMatchObject({ status: 'ok' });
    await expect.poll(() => waiting.length).toBe(3);
    expect(most).toBe(2);
    await sandbox.close();
    await sandbox.close();
    for (const each of [second!, third!, sandbox.run({ code: '' })])
      expect(await rejection(each)).toMatchObject({ code: 'disposed' });
  });

  test('refuses an address or a number that is none', () => {
    for (const options of [{ url: 'ftp://x' }, { url: '' }, { url, concurrency: 0 }])
      expect(() => sandboxFusion(options)).toThrow(expect.objectContaining({ code: 'invalid_argument' }));
  });
});
