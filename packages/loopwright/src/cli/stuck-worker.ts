/** The thread of a watch: waits for signs of life, and ends the process when there are none. */
import { workerData } from 'node:worker_threads';
import { LoopwrightError } from '@loopwright/protocol';
import { tellLastWords } from './last-words.js';
import type { StuckWatchOptions } from './stuck-watch.js';

/** What the watch hands to its thread. */
export interface StuckWatched extends StuckWatchOptions {
  /** A counter that grows while the main thread lives (−1: the watch has ended), and the length of `place`. */
  readonly beats: Int32Array;
  /** UTF-8. */
  readonly place: Uint8Array;
}

const { beats, place, limitMs, who, ...words } = workerData as StuckWatched; // true: the watch alone starts this

let silent = 0;
for (let last = Atomics.load(beats, 0); last !== -1; ) {
  // Two waits in a row, since a machine that slept passes one of them in no time.
  const outcome = Atomics.wait(beats, 0, last, limitMs / 2);
  silent = outcome === 'timed-out' ? silent + 1 : 0;
  if (silent === 2) end();
  last = Atomics.load(beats, 0);
}

function end(): never {
  const where = Buffer.from(place.slice(0, Atomics.load(beats, 1))).toString();
  const error = new LoopwrightError({
    code: 'grader_timeout',
    message: `the ${who} has held the thread for ${limitMs / 1000} s, at ${where}: a loop of it doesn't end`,
    details: {
      field: who,
      remedy: 'bound the loop, or judge by regexMatch, sqlResult or unitTests, which are bounded',
    },
  });
  tellLastWords(error, words);
  // The main thread listens to no gentler signal.
  process.kill(process.pid, 'SIGKILL');
  for (;;) Atomics.wait(beats, 0, Atomics.load(beats, 0));
}
