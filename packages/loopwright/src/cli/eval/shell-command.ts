/** A command of the user's shell, with its time and its output bounded: what ends it ends all that it started. */
import { spawn } from 'node:child_process';

export interface ShellCommandOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
  /** Of standard output. */
  readonly maxBytes: number;
  /** Told of each piece of the standard output. */
  readonly onOutput: (text: string) => void;
  readonly signal: AbortSignal;
}

/** How it ended: by itself, with an exit code or the name of a signal, or here. */
export type ShellEnd = { readonly exit: number | string } | { readonly endedFor: 'time' | 'output' };

const isWindows = process.platform === 'win32';

/**
 * Its standard error is shown; its standard input is empty.
 *
 * @throws the signal's reason; what starting it throws
 */
export async function shellCommand(
  command: string,
  { env, timeoutMs, maxBytes, onOutput, signal }: ShellCommandOptions,
): Promise<ShellEnd> {
  signal.throwIfAborted();
  const [shell, flag] = isWindows ? ['cmd.exe', '/c'] : ['/bin/sh', '-c'];
  // A group of its own: the end of the shell alone would leave what it started.
  const child = spawn(shell, [flag, command], { env, stdio: ['ignore', 'pipe', 'inherit'], detached: !isWindows });
  let endedFor: 'time' | 'output' | undefined;
  const end = (): void => {
    if (child.pid === undefined) return;
    try {
      if (isWindows) child.kill();
      else process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  };
  const endFor = (why: 'time' | 'output'): void => {
    endedFor ??= why;
    end();
  };
  const timer = setTimeout(() => endFor('time'), timeoutMs);
  signal.addEventListener('abort', end, { once: true });
  process.on('exit', end);
  let bytes = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    bytes += Buffer.byteLength(text);
    if (bytes > maxBytes) endFor('output');
    else onOutput(text);
  });
  try {
    const exit = await new Promise<number | string>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code, name) => resolve(code ?? name ?? 'no code'));
    });
    signal.throwIfAborted();
    return endedFor === undefined ? { exit } : { endedFor };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    process.off('exit', end);
  }
}
