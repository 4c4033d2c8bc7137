/** A task whose code is called beside a model: bounded in time, watched for what it does besides, and its first failure kept to be told. */
import { escapeText, type Problem, type Task, truncateText } from '@loopwright/loops';
import { withinTime } from '@loopwright/loops/node';
import { CodeWatch } from './code-watch.js';
import type { Console } from './console.js';

/** Characters of a failure that are shown. */
const messageLength = 300;

export interface TaskWatchOptions {
  /** Of a call, while no other ends; and for how long one may hold the thread, at least. */
  readonly limitMs: number;
}

/** Until it is disposed. */
export class TaskWatch implements Disposable {
  readonly #console: Console;
  readonly #limitMs: number;
  readonly #code: CodeWatch;
  #failures = 0;
  #first: unknown;

  constructor(console: Console, { limitMs }: TaskWatchOptions) {
    this.#console = console;
    this.#limitMs = limitMs;
    this.#code = new CodeWatch(console, { limitMs, who: 'grader' });
  }

  /** The same task, watched. */
  over<P extends Problem>(task: Task<P>): Task<P> {
    return withinTime(task, {
      limitMs: this.#limitMs,
      onCall: (name, problem) => this.#code.at(`${name} of ${problem}, task ${task.name}`),
      onFailure: (error) => {
        if (this.#failures === 0) this.#first = error;
        this.#failures += 1;
      },
    });
  }

  /** Why the first call that failed did, if one did: for the terminal alone, since it may quote content. */
  tellFirstFailure(): void {
    if (this.#failures === 0) return;
    const first = this.#first;
    const text = first instanceof Error ? `${first.name}: ${first.message}` : String(first);
    const more = this.#failures === 1 ? '' : ` (the first of ${this.#failures} failures)`;
    this.#console.note(`grader: ${truncateText(escapeText(text), messageLength)}${more}`);
  }

  [Symbol.dispose](): void {
    this.#code[Symbol.dispose]();
  }
}
