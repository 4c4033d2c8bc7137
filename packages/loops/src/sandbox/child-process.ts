/** One child process: born warm, given one task, killed. What it prints is capped here, whatever it does itself. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { tasksFd } from './child-channel.js';

export interface ChildCommand {
  readonly script: string;
  readonly args: readonly string[];
  /** Files or folders (ending in `/*`) that it may read; it may write none. */
  readonly readable: readonly string[];
  readonly nodeFlags: readonly string[];
  /** CPU time after which the system ends it, should this process be gone. */
  readonly cpuSeconds: number;
  /** Bytes that are taken from it: of an answer, and 16 times as many of all; and of each output stream. */
  readonly lineBytes: number;
  readonly outputBytes: number;
}

export type ChildEnd =
  | { readonly type: 'exit'; readonly code: number | null; readonly signal: NodeJS.Signals | null }
  | { readonly type: 'spawn-failed'; readonly error: Error }
  | { readonly type: 'flooded' }
  /** A line that is no message. */
  | { readonly type: 'malformed' };

/** Node's own flag for it has lost its prefix in 22.13 and 23.5. */
function permissionFlag(): string {
  return process.allowedNodeEnvironmentFlags.has('--permission') ? '--permission' : '--experimental-permission';
}

export class SandboxChild {
  readonly #process: ChildProcess;
  readonly #outputs = { stdout: new Capped(), stderr: new Capped() };
  readonly #limits: Pick<ChildCommand, 'lineBytes' | 'outputBytes'>;
  #parts: Buffer[] = [];
  #partBytes = 0;
  #answerBytes = 0;
  #end: ChildEnd | undefined;
  /** Resolves once, when it is gone and all that it wrote has been read. */
  readonly ended: Promise<ChildEnd>;
  /** Called with each line that it answers. */
  onLine: (line: string) => void = () => {};

  constructor(command: ChildCommand) {
    this.#limits = command;
    this.#process = start(command);
    const [, stdout, stderr, tasks, answers] = this.#process.stdio as readonly [
      null,
      Readable,
      Readable,
      Writable,
      Readable,
    ]; // true: spawned so
    stdout.on('data', (chunk: Buffer) => this.#outputs.stdout.take(chunk, command.outputBytes));
    stderr.on('data', (chunk: Buffer) => this.#outputs.stderr.take(chunk, command.outputBytes));
    answers.on('data', (chunk: Buffer) => this.#read(chunk));
    // A child that dies while it is written to tells so by its end.
    for (const stream of [stdout, stderr, tasks, answers]) stream.on('error', () => {});
    this.ended = new Promise((resolve) => {
      const settle = (end: ChildEnd): void => {
        this.#end ??= end;
        resolve(this.#end);
      };
      this.#process.once('error', (error) => settle({ type: 'spawn-failed', error }));
      this.#process.once('close', (code, signal) => settle({ type: 'exit', code, signal }));
    });
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  send(line: string): void {
    const tasks = this.#process.stdio[tasksFd] as Writable; // true: spawned so
    if (!tasks.destroyed) tasks.write(`${line}\n`);
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }

  output(): { readonly stdout: string; readonly stderr: string; readonly isCut: boolean } {
    const { stdout, stderr } = this.#outputs;
    return { stdout: stdout.text(), stderr: stderr.text(), isCut: stdout.isCut || stderr.isCut };
  }

  /** Resident bytes, where the system tells them (Linux); else undefined. */
  residentBytes(): number | undefined {
    try {
      const [, pages] = readFileSync(`/proc/${this.pid}/statm`, 'utf8').split(' ');
      return Number(pages) * 4096;
    } catch {
      return undefined;
    }
  }

  #read(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const line = Buffer.concat([...this.#parts, chunk.subarray(from, end)]);
      this.#parts = [];
      this.#partBytes = 0;
      from = end + 1;
      if (line.length <= this.#limits.lineBytes) this.onLine(line.toString('utf8'));
      else this.#flood();
    }
    this.#parts.push(chunk.subarray(from));
    this.#partBytes += chunk.length - from;
    this.#answerBytes += chunk.length;
    const { lineBytes } = this.#limits;
    if (this.#partBytes > lineBytes || this.#answerBytes > 16 * lineBytes) this.#flood();
  }

  #flood(): void {
    this.#parts = [];
    this.#partBytes = 0;
    this.#end ??= { type: 'flooded' };
    this.kill();
  }
}

function start({ script, args, readable, nodeFlags, cpuSeconds }: ChildCommand): ChildProcess {
  const node = [
    '--no-warnings',
    '--disallow-code-generation-from-strings',
    permissionFlag(),
    ...readable.map((path) => `--allow-fs-read=${path}`),
    ...nodeFlags,
    script,
    ...args,
  ];
  const options: SpawnOptions = {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
    // Windows starts no program without it.
    env: process.env.SystemRoot === undefined ? {} : { SystemRoot: process.env.SystemRoot },
    cwd: '/',
    windowsHide: true,
  };
  if (process.platform === 'win32') return spawn(process.execPath, node, options);
  // The system's own limits: no core, no byte into any file, and an end by CPU time.
  const limits = `ulimit -c 0; ulimit -f 0; ulimit -t ${cpuSeconds}; exec "$0" "$@"`;
  return spawn('/bin/sh', ['-c', limits, process.execPath, ...node], options);
}

class Capped {
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  isCut = false;

  take(chunk: Buffer, limit: number): void {
    const kept = chunk.subarray(0, limit - this.#bytes);
    this.#bytes += kept.length;
    if (kept.length > 0) this.#chunks.push(kept);
    if (kept.length < chunk.length) this.isCut = true;
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }
}
