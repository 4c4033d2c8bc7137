/** The process of one Python program: restores Pyodide, waits for its task, does it, ends. Without a snapshot it makes one and ends. */
import { readFileSync } from 'node:fs';
import { answersFd, lineReader, printer, tasksFd, writeLine } from '../child-channel.js';
import type { Task } from '../messages.js';
import { type Pyodide, pyodideRealm } from './realm.js';
import { pythonRunner } from './runner.js';

/** Imported once, in the snapshot: what programs use most. */
const preloaded =
  'abc, argparse, ast, asyncio, bisect, collections, contextlib, copy, dataclasses, datetime, decimal, enum, fractions, functools, heapq, io, itertools, json, math, operator, os, random, re, statistics, string, sys, textwrap, time, types, typing';

interface Start {
  readonly directory: string;
  readonly memoryBytes: number;
  /** File of the snapshot; undefined to make one. */
  readonly snapshot: string | undefined;
}

const homeDirectory = '/home/program';

async function main({ directory, memoryBytes, snapshot }: Start): Promise<void> {
  const { loadPyodide, emptyObject } = await pyodideRealm(directory, memoryBytes);
  const options = {
    indexURL: `${directory}/`,
    jsglobals: emptyObject,
    env: { HOME: homeDirectory, PYTHONHASHSEED: '0' },
    stdin: () => null,
    stdout: () => {},
    stderr: () => {},
  };
  if (snapshot === undefined) {
    const pyodide = await loadPyodide({ ...options, _makeSnapshot: true });
    pyodide.runPython(`import ${preloaded}`);
    pyodide.FS.mkdirTree(homeDirectory);
    pyodide.runPython(
      `import sys, types\nsys.modules['_runner'] = types.ModuleType('_runner')\nexec(${JSON.stringify(pythonRunner)}, sys.modules['_runner'].__dict__)`,
      {},
    );
    writeLine(answersFd, Buffer.from(pyodide.makeMemorySnapshot()).toString('base64'));
    return;
  }
  const pyodide = await loadPyodide({ ...options, _loadSnapshot: readFileSync(snapshot) });
  const perform = pyodide.runPython("import sys\nsys.modules.pop('_runner').main") as Perform; // true: the runner's main
  writeLine(answersFd, JSON.stringify({ type: 'ready' }));
  const read = lineReader(tasksFd);
  const line = read();
  if (line === null) return;
  writeLine(answersFd, JSON.stringify({ type: 'started' }));
  writeLine(answersFd, work({ pyodide, perform, line, read }));
}

type Perform = (task: string, read: () => string | null, write: (line: string) => void) => string;

interface Work {
  readonly pyodide: Pyodide;
  readonly perform: Perform;
  readonly line: string;
  readonly read: () => string | null;
}

function work({ pyodide, perform, line, read }: Work): string {
  const task = JSON.parse(line) as Task; // true: the parent wrote it
  try {
    prepare(pyodide, task);
    return perform(line, read, (text) => writeLine(answersFd, text));
  } catch (error) {
    return JSON.stringify({ type: 'done', ...uncaught(error, task) });
  }
}

/** What Python itself could not catch: the end by its own hand, the engine's stack, its memory. */
function uncaught(error: unknown, task: Task): object {
  // It is of another realm, so that instanceof says nothing.
  const about = (typeof error === 'object' && error !== null ? error : {}) as Readonly<Record<string, unknown>>; // true: an object
  const [name, message] = [String(about.name ?? 'Error'), String(about.message ?? '')];
  if (typeof about.status === 'number') {
    // os._exit
    if (about.status === 0 && task.type === 'run' && task.calls.length === 0) return { status: 'ok' };
    return { status: 'error', error: { type: 'SystemExit', message: `exit code ${about.status}` } };
  }
  if (name === 'RangeError') return { status: 'error', error: { type: 'RecursionError', message } };
  if (/out of memory|allocation failed/i.test(message)) return { status: 'out_of_memory' };
  return { status: 'error', error: { type: name, message: message.slice(0, 2000) } };
}

function prepare(pyodide: Pyodide, task: Task): void {
  const stdin = Buffer.from(task.type === 'judge' ? '' : task.stdin, 'utf8');
  let at = 0;
  pyodide.setStdin({
    read: (buffer) => {
      const part = stdin.subarray(at, at + buffer.length);
      buffer.set(part);
      at += part.length;
      return part.length;
    },
  });
  pyodide.setStdout({ write: printer(1, task.outputBytes) });
  pyodide.setStderr({ write: printer(2, task.outputBytes) });
  pyodide.FS.chdir(homeDirectory);
  for (const [path, content] of Object.entries(task.files)) {
    const file = `${homeDirectory}/${path}`;
    pyodide.FS.mkdirTree(file.slice(0, file.lastIndexOf('/')));
    pyodide.FS.writeFile(file, Buffer.from(content, 'base64'));
  }
}

const [directory = '', memoryBytes, snapshot] = process.argv.slice(2);
await main({ directory, memoryBytes: Number(memoryBytes), snapshot });
process.exit(0);
