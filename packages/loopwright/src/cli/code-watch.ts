/**
 * Watches over the user's own code while a command calls it: what it may do besides giving a value or throwing. It may never give the thread back, end
 * the process, or throw where nobody waits for it. Each is told with where it was, an earlier result goes, and the command fails.
 */
import { writeSync } from 'node:fs';
import { escapeText, truncateText } from '@loopwright/loops';
import { LoopwrightError } from '@loopwright/protocol';
import { endIsMeant, endProcess } from '../ending.js';
import type { Console } from './console.js';
import { exitCodes } from './exit-codes.js';
import { tellLastWords } from './last-words.js';
import { StuckWatch, type StuckWatchOptions } from './stuck-watch.js';

/** Characters of what was thrown that are shown. */
const messageLength = 500;

/** Until it is disposed. */
export class CodeWatch implements Disposable {
  readonly #options: StuckWatchOptions;
  readonly #stuck: StuckWatch;
  readonly #debug: boolean;
  #place = 'its beginning';

  constructor(console: Console, options: Omit<StuckWatchOptions, 'json'>) {
    this.#options = { ...options, json: console.json };
    this.#debug = console.debug;
    this.#stuck = new StuckWatch(this.#options);
    process.on('exit', this.#onExit);
    // Rejections that nobody handles arrive here too.
    process.on('uncaughtException', this.#onThrown);
  }

  /** What is called now: shown if it is the last. */
  at(place: string): void {
    this.#place = escapeText(place);
    this.#stuck.at(place);
  }

  readonly #onExit = (code: number): void => {
    if (endIsMeant()) return;
    const { who } = this.#options;
    this.#tell(`the ${who} ended the process, with exit code ${code}; the last that began was ${this.#place}`, {
      remedy: 'take process.exit and what calls it out of it: give a grade, or throw',
    });
    process.exitCode = exitCodes.failed;
  };

  readonly #onThrown = (thrown: unknown): void => {
    const { name, message } = thrown instanceof Error ? thrown : { name: typeof thrown, message: String(thrown) };
    const what = truncateText(escapeText(`${name}: ${message}`), messageLength);
    this.#tell(`thrown where nobody waits for it, by the ${this.#options.who}: ${what}`, {
      remedy: `await what it begins; the last that began was ${this.#place}. LOOPWRIGHT_DEBUG=1 shows the stack`,
    });
    if (this.#debug && thrown instanceof Error) writeSync(2, `${thrown.stack}\n`);
    endProcess(exitCodes.failed);
  };

  #tell(message: string, { remedy }: { readonly remedy: string }): void {
    const { who, ...words } = this.#options;
    tellLastWords(new LoopwrightError({ code: 'grader_failed', message, details: { field: who, remedy } }), words);
  }

  [Symbol.dispose](): void {
    process.off('exit', this.#onExit);
    process.off('uncaughtException', this.#onThrown);
    this.#stuck[Symbol.dispose]();
  }
}
