/** Python programs by Pyodide, each in a process of its own that was warm before. */
import { rmSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { LoopwrightError } from '@loopwright/protocol';
import { type ChildCommand, SandboxChild } from './child-process.js';
import { childFolder, startMs } from './children.js';
import { ProcessPool, startFailed } from './process-pool.js';
import { type Limits, limitsOf, type ProcessSandboxOptions } from './process-sandbox.js';
import { PythonProcesses } from './python-tests.js';
import type { TestingSandbox } from './sandbox.js';

/**
 * A sandbox for Python: Pyodide, the standard library, no packages beside it. Needs `pyodide`, which is an optional peer.
 *
 * Each program has a process of its own, kept warm before and killed afterwards: no network, no files but its own, no environment,
 * no other processes. Its memory is capped, and its deadline is a kill. Hash seed and `random`'s first seed are the
 * same in each, so that a program does the same every time.
 *
 * The first call makes an image of a started interpreter (seconds of CPU), which its processes begin from.
 *
 * @throws `sandbox_failed` without `pyodide`, or when its processes don't come up; `invalid_argument`
 * @example
 * await using sandbox = await createPythonSandbox();
 * const result = await sandbox.run({ code: 'def add(a, b): return a + b', calls: [{ entry: 'add', args: [1, 2] }] });
 */
export async function createPythonSandbox(options: ProcessSandboxOptions = {}): Promise<TestingSandbox> {
  const limits = limitsOf(options, Math.min(4, availableParallelism()));
  const directory = pyodideDirectory();
  const home = await mkdtemp(path.join(tmpdir(), 'loopwright-sandbox-'));
  // A process that ends without closing it leaves nothing: its pool ends the programs then.
  const onExit = (): void => rmSync(home, { recursive: true, force: true });
  process.on('exit', onExit);
  const remove = async (): Promise<void> => {
    process.off('exit', onExit);
    await rm(home, { recursive: true, force: true });
  };
  try {
    const snapshot = path.join(home, 'python.bin');
    await writeFile(snapshot, await makeSnapshot(directory, limits), { mode: 0o600 });
    const pool = new ProcessPool({
      size: limits.workers,
      startMs,
      start: () => new SandboxChild(command(directory, limits, snapshot)),
    });
    return new PythonProcesses('python', pool, limits, remove);
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Where the installed package lies, as seen from a module. */
export function pyodideDirectory(from: string = import.meta.url): string {
  try {
    return path.dirname(createRequire(from).resolve('pyodide'));
  } catch (cause) {
    throw new LoopwrightError({
      code: 'sandbox_failed',
      message: 'createPythonSandbox: the package pyodide is not installed; npm i pyodide',
      details: { field: 'pyodide', expected: 'an installed package', got: 'none', remedy: 'npm i pyodide' },
      cause,
    });
  }
}

function command(directory: string, limits: Limits, snapshot?: string): ChildCommand {
  const folder = childFolder();
  const memoryBytes = limits.memoryMiB * 2 ** 20;
  return {
    script: path.join(folder, 'python', 'child.js'),
    args: [directory, String(memoryBytes), ...(snapshot === undefined ? [] : [snapshot])],
    readable: [path.join(folder, '*'), path.join(directory, '*'), ...(snapshot === undefined ? [] : [snapshot])],
    nodeFlags: ['--experimental-vm-modules', '--max-old-space-size=128'],
    cpuSeconds: 60 + Math.ceil(limits.timeoutMs / 1000),
    lineBytes: 64 * limits.outputBytes,
    outputBytes: limits.outputBytes,
  };
}

async function makeSnapshot(directory: string, limits: Limits): Promise<Buffer> {
  const child = new SandboxChild({ ...command(directory, limits), lineBytes: 2 ** 28 });
  const timer = setTimeout(() => child.kill(), startMs);
  let image: Buffer | undefined;
  child.onLine = (line) => {
    image = Buffer.from(line, 'base64');
  };
  const end = await child.ended;
  clearTimeout(timer);
  if (image !== undefined) return image;
  throw startFailed(
    end.type === 'spawn-failed' ? end.error : new Error(`no image was made: ${child.output().stderr.slice(-2000)}`),
  );
}
