import { expect, it } from 'vitest';
import { UntilStop } from './until-stop.js';

/** What is shown of a text that comes in these pieces. */
function shown(stops: readonly string[], pieces: readonly string[]): string[] {
  const text = new UntilStop(stops);
  return [...pieces.map((piece) => text.push(piece)), text.flush()];
}

it.each([
  { stops: [], pieces: ['ab', 'c'], expected: ['ab', 'c', ''] },
  { stops: ['STOP'], pieces: ['a', 'bST', 'OPc', 'd'], expected: ['a', 'b', '', '', ''] },
  { stops: ['STOP'], pieces: ['aST', 'Ab'], expected: ['a', 'STAb', ''] },
  { stops: ['STOP'], pieces: ['aSTO'], expected: ['a', 'STO'] },
  { stops: ['bc', 'b'], pieces: ['ab', 'c'], expected: ['a', '', ''] },
  { stops: ['aab'], pieces: ['a', 'a', 'a', 'b'], expected: ['', '', 'a', '', ''] },
  { stops: ['\n\n'], pieces: ['x\n', 'y\n', '\nz'], expected: ['x', '\ny', '', ''] },
])('of $pieces up to $stops it shows $expected', ({ stops, pieces, expected }) => {
  expect(shown(stops, pieces)).toEqual(expected);
});

it('shows the same of a text, however it is cut', () => {
  const text = 'one two three two one';
  for (const stop of ['two', ' t', 'three two', 'four', 'e']) {
    const at = text.indexOf(stop);
    for (let size = 1; size < 6; size++) {
      const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, i) =>
        text.slice(i * size, (i + 1) * size),
      );
      expect(shown([stop], pieces).join('')).toBe(at < 0 ? text : text.slice(0, at));
    }
  }
});
