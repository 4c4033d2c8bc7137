/** JavaScript programs by QuickJS, each in a process of its own that was warm before. */
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { SandboxChild } from './child-process.js';
import { childFolder, startMs } from './children.js';
import { ProcessPool } from './process-pool.js';
import { limitsOf, ProcessSandbox, type ProcessSandboxOptions } from './process-sandbox.js';
import type { Sandbox } from './sandbox.js';

/**
 * A sandbox for JavaScript: the language as QuickJS has it, and of a host only `console`, `print`, `readline` and
 * `require('fs').readFileSync` (0 is standard input; files are text). Programs are scripts, not modules; promises are waited for, timers
 * aren't there. Its processes are bounded as those of {@link createPythonSandbox}.
 *
 * @throws `invalid_argument`
 * @example
 * await using sandbox = await createJavaScriptSandbox();
 * const result = await sandbox.run({ code: 'const add = (a, b) => a + b;', calls: [{ entry: 'add', args: [1, 2] }] });
 */
export async function createJavaScriptSandbox(options: ProcessSandboxOptions = {}): Promise<Sandbox> {
  const limits = limitsOf(options, Math.min(4, availableParallelism()));
  const require = createRequire(import.meta.url);
  const core = require.resolve('quickjs-emscripten-core');
  const variant = require.resolve('@jitl/quickjs-ng-wasmfile-release-sync');
  // What both need lies where they find it, which installers may nest.
  const types = createRequire(core).resolve('@jitl/quickjs-ffi-types');
  const folders = [core, variant, types].map((file) => path.dirname(path.dirname(file)));
  const command = {
    script: path.join(childFolder(), 'javascript', 'child.js'),
    args: [core, variant, String(limits.memoryMiB * 2 ** 20)],
    readable: [path.join(childFolder(), '*'), ...folders.map((folder) => path.join(folder, '*'))],
    nodeFlags: ['--max-old-space-size=128'],
    cpuSeconds: 60 + Math.ceil(limits.timeoutMs / 1000),
    lineBytes: 64 * limits.outputBytes,
    outputBytes: limits.outputBytes,
  };
  const pool = new ProcessPool({ size: limits.workers, startMs, start: () => new SandboxChild(command) });
  return new ProcessSandbox('javascript', pool, limits, async () => {});
}
