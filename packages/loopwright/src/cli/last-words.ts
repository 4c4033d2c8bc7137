/** An error that is told while the process ends, when nothing that waits is written any more. */
import { rmSync, writeSync } from 'node:fs';
import type { LoopwrightError } from '@loopwright/protocol';
import { describeError } from './console.js';

export interface LastWordsOptions {
  /** Tell it as an event. */
  readonly json: boolean;
  /** A file or folder that is removed then: such as an earlier result, which no longer holds. */
  readonly stale?: string;
}

export function tellLastWords(error: LoopwrightError, { json, stale }: LastWordsOptions): void {
  if (stale !== undefined) rmSync(stale, { recursive: true, force: true });
  const [target, text] = json
    ? [1, JSON.stringify({ type: 'error', error: error.toJSON() })]
    : [2, `\n${describeError(error)}`];
  try {
    writeSync(target, `${text}\n`);
  } catch {
    // Nobody reads any more: the exit code says it.
  }
}
