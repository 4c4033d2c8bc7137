import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { Console } from './console.js';
import { SlowNotes } from './slow-notes.js';

test.each([
  [false, false, 'graded 2 of 4\ngraded 4 of 4\n'],
  [true, false, ''],
  [false, true, ''],
])('a log is told every ten seconds, a terminal (%s) and a program (%s) are not', (isTTY, isJson, written) => {
  const stderr = Object.assign(new PassThrough(), { isTTY });
  const console = new Console({ stdout: new PassThrough(), stderr, debug: false });
  if (isJson) console.useJson();
  let now = 0;
  const notes = new SlowNotes(console, () => now);
  for (const [i, at] of [9_999, 10_000, 19_999, 20_000].entries()) {
    now = at;
    notes.show(`graded ${i + 1} of 4`);
  }
  expect(String(stderr.read() ?? '')).toBe(written);
});
