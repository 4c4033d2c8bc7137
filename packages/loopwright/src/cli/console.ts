/** What a command writes to: text for people, or one JSON value a line for programs. */
import { asLoopwrightError, type LoopwrightError } from '@loopwright/protocol';
import picocolors from 'picocolors';
import { hanging, type Width } from './hanging.js';

export type OutputStream = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

export interface ConsoleOptions {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Print the stacks of errors. */
  readonly debug: boolean;
}

export class Console {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly debug: boolean;
  #json = false;

  constructor({ stdout, stderr, debug }: ConsoleOptions) {
    this.stdout = stdout;
    this.stderr = stderr;
    this.debug = debug;
  }

  get json(): boolean {
    return this.#json;
  }

  /** From here on `event` writes and `line` doesn't. */
  useJson(): void {
    this.#json = true;
  }

  /** Colours of the standard output; none where it is no terminal, or NO_COLOR is set. */
  get paint(): ReturnType<typeof picocolors.createColors> {
    return picocolors.createColors(this.stdout.isTTY === true && picocolors.isColorSupported);
  }

  /** For people. */
  line(text = ''): void {
    if (!this.#json) this.stdout.write(`${text}\n`);
  }

  /** Names and values below each other, values in one column. */
  table(rows: readonly (readonly [string, string])[], indent = '  '): void {
    const width = Math.max(0, ...rows.map(([name]) => name.length));
    for (const [name, value] of rows) this.hanging(`${indent}${this.paint.dim(name.padEnd(width))}  `, value);
  }

  /** A line for people that, on a terminal, goes on below its beginning where it is long. */
  hanging(lead: string, text: string): void {
    this.line(hanging(lead, text, this.stdout));
  }

  /** For programs. */
  event(value: object): void {
    if (this.#json) this.stdout.write(`${JSON.stringify(value)}\n`);
  }

  /** For people, beside the output: what is going on. */
  note(text: string): void {
    this.stderr.write(`${text}\n`);
  }

  /** An error with all that it knows; its stack only when debugging. */
  error(cause: unknown): void {
    const error = asLoopwrightError(cause);
    if (this.#json) this.event({ type: 'error', error: error.toJSON() });
    else
      this.note(
        describeError(error, {
          paint: picocolors.createColors(this.stderr.isTTY === true && picocolors.isColorSupported),
          width: this.stderr,
        }),
      );
    if (this.debug) this.note(stackOf(error));
  }
}

type Paint = ReturnType<typeof picocolors.createColors>;

/** The error in a few lines: code, then field, expected, got and remedy or, where it has none of these, its message. */
export function describeError(
  error: LoopwrightError,
  { paint = picocolors.createColors(false), width = {} }: { readonly paint?: Paint; readonly width?: Width } = {},
): string {
  const { field, expected, got, remedy } = error.details;
  const isWhole = field !== undefined && expected !== undefined && got !== undefined;
  const facts = Object.entries({ expected, got, remedy }).flatMap(([name, value]) =>
    value === undefined ? [] : [hanging(`  ${paint.dim(name.padEnd(8))}  `, value, width)],
  );
  const head = hanging(`${paint.red('error')} ${paint.bold(error.code)}: `, isWhole ? field : error.message, width);
  return [
    head,
    ...(isWhole ? facts : facts.slice(-1).filter(() => remedy !== undefined && !error.message.includes(remedy))),
  ].join('\n');
}

function stackOf(error: Error): string {
  const cause = error.cause instanceof Error ? `\ncaused by ${stackOf(error.cause)}` : '';
  return `${error.stack ?? error.message}${cause}`;
}
