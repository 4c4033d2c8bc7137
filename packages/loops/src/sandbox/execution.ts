/** One task in one child, from its start to its last answer, its deadline or its death. */
import { LoopwrightError } from '@loopwright/protocol';
import type { ChildEnd, SandboxChild } from './child-process.js';
import type { Task } from './messages.js';

/** How often resident memory is looked at. */
const watchMs = 25;

export type Message = Readonly<Record<string, unknown>> & { readonly type: string };

export type Ending =
  | { readonly type: 'answered'; readonly message: Message }
  | { readonly type: 'timeout' }
  | { readonly type: 'out_of_memory' }
  | { readonly type: 'ended'; readonly end: ChildEnd }
  /** Stopped from here, see {@link Execution.stop}. */
  | { readonly type: 'stopped' };

export interface ExecutionOptions {
  readonly child: SandboxChild;
  readonly task: Task;
  /** From the child's word that it has begun. */
  readonly timeoutMs: number;
  readonly residentBytes: number;
  readonly signal: AbortSignal | undefined;
  /** What comes between the start and the answer. */
  readonly onMessage?: (message: Message) => void;
}

export class Execution {
  /**
   * Resolves when the child is gone and its output is complete.
   *
   * @throws the signal's reason; `sandbox_failed` when the child died before it began, or was killed from outside
   */
  readonly ending: Promise<Ending>;
  readonly #child: SandboxChild;
  #startedAt: number | undefined;
  #endedAt = 0;
  #ending: Ending | undefined;

  constructor(options: ExecutionOptions) {
    this.#child = options.child;
    this.ending = this.#run(options);
    this.ending.catch(() => {}); // looked at by whoever waits for it
  }

  get durationMs(): number {
    return this.#startedAt === undefined ? 0 : this.#endedAt - this.#startedAt;
  }

  stop(ending: Ending = { type: 'stopped' }): void {
    this.#ending ??= ending;
    if (this.#endedAt === 0) this.#endedAt = performance.now();
    this.#child.kill();
  }

  async #run({ child, task, timeoutMs, residentBytes, signal, onMessage }: ExecutionOptions): Promise<Ending> {
    let timer: NodeJS.Timeout | undefined;
    const watch = setInterval(() => {
      if ((child.residentBytes() ?? 0) > residentBytes) this.stop({ type: 'out_of_memory' });
    }, watchMs);
    const onAbort = (): void => this.stop();
    signal?.addEventListener('abort', onAbort, { once: true });
    child.onLine = (line) => {
      if (this.#ending !== undefined) return;
      const message = parsed(line);
      if (message === undefined) return this.stop({ type: 'ended', end: { type: 'malformed' } });
      if (message.type === 'started' && this.#startedAt === undefined) {
        this.#startedAt = performance.now();
        const deadline = this.#startedAt + timeoutMs;
        // Timers of Node may fire a fraction of a millisecond early; a program has all of its time.
        const wait = (): void => {
          const left = deadline - performance.now();
          if (left > 0) timer = setTimeout(wait, Math.ceil(left));
          else this.stop({ type: 'timeout' });
        };
        wait();
      } else if (message.type === 'done' || message.type === 'unfit') this.stop({ type: 'answered', message });
      else onMessage?.(message);
    };
    // It may have fired between the taking of the child and now.
    if (signal?.aborted === true) onAbort();
    else child.send(JSON.stringify(task));
    try {
      const end = await child.ended;
      if (this.#endedAt === 0) this.#endedAt = performance.now();
      if (signal?.aborted === true && this.#ending?.type === 'stopped') throw signal.reason;
      if (this.#ending !== undefined) return this.#ending;
      if (this.#startedAt === undefined || (end.type === 'exit' && end.signal === 'SIGKILL')) throw died(end);
      return { type: 'ended', end };
    } finally {
      clearTimeout(timer);
      clearInterval(watch);
      signal?.removeEventListener('abort', onAbort);
    }
  }
}

function parsed(line: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(line);
    const isMessage = typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
    return isMessage ? (value as Message) : undefined; // true: looked at just now
  } catch {
    return undefined;
  }
}

function died(end: ChildEnd): LoopwrightError {
  const got = end.type === 'exit' ? `its end by ${end.signal ?? `exit code ${end.code}`}` : end.type;
  return new LoopwrightError({
    code: 'sandbox_failed',
    message: `sandbox: the process of a program was ended from outside (${got})`,
    details: {
      field: 'sandbox',
      expected: 'a process that lives until its program has ended',
      got,
      remedy: 'run the program again; where memory is short, use fewer workers or a smaller memoryMiB',
    },
    ...(end.type === 'spawn-failed' ? { cause: end.error } : {}),
  });
}
