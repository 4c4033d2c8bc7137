/** Warm children, each for one task: taken in the order of asking, replaced as they end. */
import { LoopwrightError } from '@loopwright/protocol';
import type { SandboxChild } from './child-process.js';

/** After so many children in a row that never came up, those who wait are told. */
const failuresInARow = 3;

interface Waiting {
  readonly count: number;
  readonly resolve: (children: readonly SandboxChild[]) => void;
  readonly reject: (error: unknown) => void;
}

export interface ProcessPoolOptions {
  /** Children at a time: warm, warming up and at work. */
  readonly size: number;
  readonly start: () => SandboxChild;
  readonly startMs: number;
}

export class ProcessPool {
  readonly #options: ProcessPoolOptions;
  readonly #children = new Set<SandboxChild>();
  readonly #ready: SandboxChild[] = [];
  readonly #waiting: Waiting[] = [];
  #failures = 0;
  #closed: LoopwrightError | undefined;
  readonly #onExit = (): void => {
    for (const child of this.#children) child.kill();
  };

  constructor(options: ProcessPoolOptions) {
    this.#options = options;
    process.on('exit', this.#onExit);
    this.#fill();
  }

  get size(): number {
    return this.#options.size;
  }

  /**
   * Children for one task; hand each back with {@link ProcessPool.end}.
   *
   * @throws `disposed` when closed, `sandbox_failed` when children don't come up, the signal's reason when aborted
   */
  async take(count: number, signal?: AbortSignal): Promise<readonly SandboxChild[]> {
    signal?.throwIfAborted();
    if (this.#closed !== undefined) throw this.#closed;
    // Who asks after a failure tries again from the beginning.
    if (this.#failures >= failuresInARow) this.#failures = 0;
    return await new Promise((resolve, reject) => {
      const waiting: Waiting = {
        count,
        resolve: (children) => {
          signal?.removeEventListener('abort', onAbort);
          resolve(children);
        },
        reject: (error) => {
          signal?.removeEventListener('abort', onAbort);
          reject(error);
        },
      };
      const onAbort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        waiting.reject(signal?.reason);
        this.#serve();
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.push(waiting);
      this.#fill();
      this.#serve();
    });
  }

  /** Kills a child that was taken; another takes its place. */
  end(child: SandboxChild): void {
    child.kill();
  }

  /** Ends all children, and tells those who wait. Resolves when the last one is gone. */
  async close(error: LoopwrightError): Promise<void> {
    this.#closed ??= error;
    process.off('exit', this.#onExit);
    for (const { reject } of this.#waiting.splice(0)) reject(this.#closed);
    const ends = [...this.#children].map((child) => child.ended);
    for (const child of this.#children) child.kill();
    await Promise.all(ends);
  }

  #fill(): void {
    while (this.#closed === undefined && this.#children.size < this.#options.size && this.#failures < failuresInARow)
      this.#start();
  }

  #start(): void {
    const child = this.#options.start();
    this.#children.add(child);
    const timer = setTimeout(() => child.kill(), this.#options.startMs);
    let isReady = false;
    child.onLine = () => {
      isReady = true;
      clearTimeout(timer);
      child.onLine = () => {};
      this.#failures = 0;
      this.#ready.push(child);
      this.#serve();
    };
    void child.ended.then((end) => {
      clearTimeout(timer);
      this.#children.delete(child);
      const at = this.#ready.indexOf(child);
      if (at >= 0) this.#ready.splice(at, 1);
      if (!isReady && this.#closed === undefined && ++this.#failures >= failuresInARow) {
        const stderr = child.output().stderr.slice(-2000);
        this.#fail(
          end.type === 'spawn-failed' ? end.error : new Error(`the process ended while it started: ${stderr}`),
        );
      }
      this.#fill();
    });
  }

  #serve(): void {
    for (let next = this.#waiting[0]; next !== undefined && this.#ready.length >= next.count; next = this.#waiting[0]) {
      this.#waiting.shift();
      next.resolve(this.#ready.splice(0, next.count));
    }
  }

  #fail(cause: Error): void {
    for (const { reject } of this.#waiting.splice(0)) reject(startFailed(cause));
  }
}

export function startFailed(cause: unknown): LoopwrightError {
  return new LoopwrightError({
    code: 'sandbox_failed',
    message: 'sandbox: its processes do not come up; see the cause',
    details: {
      field: 'sandbox',
      expected: 'a process that is ready for a program',
      got: 'processes that end while they start',
      remedy: 'see the cause; start fewer of them where memory is short (workers)',
    },
    cause,
  });
}
