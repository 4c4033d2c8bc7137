import { comparePairs } from '@loopwright/loops';
import { expect, test } from 'vitest';
import { Console } from '../console.js';
import { type ShownSuite, showSuites, verdictText } from './eval-text.js';

/** Pairs of 20 right answers each, of which some are lost. */
function pairs(n: number, lost: number, gained = 0) {
  const start = Array.from({ length: n }, (_, i) => (i < gained ? 0 : 1));
  return comparePairs(
    start,
    Array.from({ length: n }, (_, i) => (i >= n - lost ? 0 : 1)),
  );
}

test('what can’t be told yet comes with about how many rows would tell, and that this is an estimate', () => {
  expect(verdictText(pairs(20, 2, 1), 'the start')).toMatch(
    /^not distinguishable yet: a difference of −5\.0 points would take about \d+ more rows \(\d+ in all, power 80 %\), by an estimate/,
  );
  expect(verdictText(pairs(20, 0), 'the start')).toBe(
    'not distinguishable yet: no difference was seen in 20 rows; about 73 at the same rates would say that it is not more than 5 points worse (an estimate)',
  );
  expect(verdictText(pairs(100, 0), 'the start')).toMatch(/enough to say that it is not more than 5 points worse$/);
  expect(verdictText(pairs(20, 18), 'math/9')).toBe('worse than math/9');
});

test('the legend of suites can’t be taken for their outcome, and an undecided one says how many cases would settle it', () => {
  let text = '';
  const stream = { write: (chunk: string) => (text += chunk) } as unknown as NodeJS.WritableStream; // true: the part that is called
  const console = new Console({ stdout: stream, stderr: stream, debug: false });
  const suite = {
    name: 'old',
    label: 'old',
    comparison: pairs(20, 1),
    outcome: 'undecided',
    unjudged: 0,
    otherLines: 0,
  };
  showSuites([suite as ShownSuite], 0.05, console);
  expect(text).toMatch(/^passed, % .* n +outcome\nold .* 20 +undecided\n/);
  expect(text).toMatch(
    /\nold: undecided of 20; about \d+ cases in all would tell at the rates seen so far \(an estimate\)\.\n/,
  );
  expect(text).toMatch(/\nWhat the outcomes mean: held, .*; fell, .*; undecided, .*\.\n$/);
});
