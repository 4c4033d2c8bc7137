/** A sandbox whose programs run in child processes of this machine. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { callResultOf } from './call-result.js';
import { check, checkProgram } from './checks.js';
import type { SandboxChild } from './child-process.js';
import { Execution, type Message } from './execution.js';
import type { RunTask } from './messages.js';
import type { ProcessPool } from './process-pool.js';
import { outcomeOf } from './results.js';
import type { CallResult, Sandbox, SandboxProgram, SandboxResult } from './sandbox.js';
import { encodeValue } from './values.js';

export interface ProcessSandboxOptions {
  /** Processes at a time, each for one program; default: the processor's threads, at most 4. */
  readonly workers?: number;
  /** What a program may hold in memory, its interpreter included; default 256. */
  readonly memoryMiB?: number;
  /** Of a program, from its start; default 10 000. */
  readonly timeoutMs?: number;
  /** Kept of each of stdout and stderr; default 65 536. Values that are returned may take 64 times as much. */
  readonly outputBytes?: number;
}

export interface Limits extends Required<ProcessSandboxOptions> {
  /** A process above this is ended: the program's memory and what the process itself takes. */
  readonly residentBytes: number;
}

export class ProcessSandbox implements Sandbox {
  readonly language: Sandbox['language'];
  protected readonly pool: ProcessPool;
  protected readonly limits: Limits;
  readonly #onClose: () => Promise<void>;
  #closing: Promise<void> | undefined;

  constructor(language: Sandbox['language'], pool: ProcessPool, limits: Limits, onClose: () => Promise<void>) {
    this.language = language;
    this.pool = pool;
    this.limits = limits;
    this.#onClose = onClose;
  }

  async run(program: SandboxProgram): Promise<SandboxResult> {
    checkProgram(program, this.limits.timeoutMs);
    const { code, stdin = '', calls = [], timeoutMs = this.limits.timeoutMs, signal } = program;
    const task: RunTask = {
      type: 'run',
      code,
      stdin,
      files: base64Files(program.files),
      outputBytes: this.limits.outputBytes,
      calls: calls.map(({ entry, args }, i) => ({
        entry,
        args: args.map((arg, j) => encodeValue(arg, `calls[${i}].args[${j}]`)),
      })),
    };
    return await this.withChildren(1, signal, async ([child], queueMs) => {
      const results: CallResult[] = [];
      const onMessage = (message: Message): void => {
        if (message.type === 'called' && results.length < calls.length) results.push(callResultOf(message));
      };
      const execution = new Execution({ ...this.watched(signal), child: child!, task, timeoutMs, onMessage });
      const ending = await execution.ending;
      const output = { ...child!.output(), results, durationMs: execution.durationMs, queueMs };
      return { ...output, ...outcomeOf(ending, results.length === calls.length, output.stderr) };
    });
  }

  async close(): Promise<void> {
    this.#closing ??= (async () => {
      await this.pool.close(closedError());
      await this.#onClose();
    })();
    await this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  protected watched(signal: AbortSignal | undefined): {
    readonly residentBytes: number;
    readonly signal: AbortSignal | undefined;
  } {
    return { residentBytes: this.limits.residentBytes, signal };
  }

  /** Takes children, and ends them whatever happens. */
  protected async withChildren<T>(
    count: number,
    signal: AbortSignal | undefined,
    work: (children: readonly SandboxChild[], queueMs: number) => Promise<T>,
  ): Promise<T> {
    const askedAt = performance.now();
    const children = await this.pool.take(count, signal);
    try {
      return await work(children, performance.now() - askedAt);
    } catch (error) {
      // Its processes were killed by the closing, which is no fault of theirs.
      throw this.#closing === undefined ? error : closedError();
    } finally {
      for (const child of children) this.pool.end(child);
    }
  }
}

function closedError(): LoopwrightError {
  return complaint({ code: 'disposed', field: 'sandbox', expected: 'an open sandbox', got: 'one that was closed' });
}

export function base64Files(files: SandboxProgram['files'] = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(files).map(([path, content]) => [path, Buffer.from(content as Uint8Array).toString('base64')]),
  );
}

/** @throws `invalid_argument` */
export function limitsOf(options: ProcessSandboxOptions, fallbackWorkers: number): Limits {
  const { workers = fallbackWorkers, memoryMiB = 256, timeoutMs = 10_000, outputBytes = 65_536 } = options;
  check(
    'workers',
    'a whole number from 1 to 256',
    Number.isInteger(workers) && workers >= 1 && workers <= 256,
    workers,
  );
  check('memoryMiB', 'a number from 64 to 4096', memoryMiB >= 64 && memoryMiB <= 4096, memoryMiB);
  check('timeoutMs', 'a number above 0, at most 3 600 000', timeoutMs > 0 && timeoutMs <= 3_600_000, timeoutMs);
  const isSize = Number.isInteger(outputBytes) && outputBytes >= 1024 && outputBytes <= 2 ** 26;
  check('outputBytes', 'a whole number from 1024 to 67 108 864', isSize, outputBytes);
  return { workers, memoryMiB, timeoutMs, outputBytes, residentBytes: (memoryMiB + 320) * 2 ** 20 };
}
