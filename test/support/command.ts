/** The `loopwright` command in a process of its own, as users run it: the compiled one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Of the command, which must be compiled. */
export const commandEntry = fileURLToPath(new URL('../../packages/loopwright/bin/loopwright.js', import.meta.url));

export interface CommandOptions {
  readonly home: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** A command and its arguments that run it, such as `prlimit`. */
  readonly under?: readonly string[];
}

export interface CommandEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The JSON lines of the standard output. */
  readonly events: readonly Record<string, unknown>[];
}

export interface RunningCommand {
  readonly child: ChildProcess;
  /** Resolves with the standard output so far when it (or the standard error) matches. */
  output(pattern: RegExp): Promise<string>;
  interrupt(): void;
  readonly end: Promise<CommandEnd>;
}

/** Starts it; nothing of the tests' own environment but the path reaches it. */
export function startCommand(
  args: readonly string[],
  { home, cwd, env = {}, under = [] }: CommandOptions,
): RunningCommand {
  const [file, ...rest] = [...under, process.execPath, commandEntry, ...args] as [string, ...string[]]; // true: it has two at least
  const child = spawn(file, rest, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH ?? '', HOME: home, LOOPWRIGHT_HOME: home, ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
  let stdout = '';
  let stderr = '';
  const watchers = new Set<() => void>();
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
    for (const watch of watchers) watch();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
    for (const watch of watchers) watch();
  });
  const end = new Promise<CommandEnd>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, stdout, stderr, events: eventsIn(stdout) }));
  });
  return {
    child,
    end,
    interrupt: () => child.kill('SIGINT'),
    output: (pattern) =>
      new Promise((resolve, reject) => {
        const watch = () => {
          if (!pattern.test(stdout) && !pattern.test(stderr)) return;
          watchers.delete(watch);
          resolve(stdout);
        };
        watchers.add(watch);
        watch();
        end.then(() => reject(new Error(`it ended without ${pattern}: ${stdout}${stderr}`)), reject);
      }),
  };
}

export function runCommand(args: readonly string[], options: CommandOptions): Promise<CommandEnd> {
  return startCommand(args, options).end;
}

function eventsIn(stdout: string): Record<string, unknown>[] {
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>); // true: every line is an object
}
