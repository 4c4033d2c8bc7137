import { versionResults } from '@loopwright/protocol';
import { expect, test } from 'vitest';
import { resultRows } from './result-text.js';

const metric = (name: string, value: number, note = '') => ({ name, value, note });
const paired = (name: string, [difference, low, high, n]: readonly number[]) => [
  metric(`${name}/difference`, difference ?? 0, `task sums\u001b against tiny`),
  metric(`${name}/difference_low`, low ?? 0),
  metric(`${name}/difference_high`, high ?? 0),
  metric(`${name}/n`, n ?? 0),
];

test('an approval is told with difference, interval and n of each result, what is missing and what fell', () => {
  const metrics = [...paired('eval', [0.117, -0.0294, 0.203, 60]), ...paired('regression', [-0.2, -0.3, -0.1, 40])];
  expect(resultRows(metrics, { notes: true })).toEqual([
    ['evaluation', '+11.7 points (at 95 % from −2.9 to +20.3), n = 60; task sums\\x1b against tiny'],
    ['regression', 'fell: −20.0 points (at 95 % from −30.0 to −10.0), n = 40; task sums\\x1b against tiny'],
    ['cost', 'missing'],
  ]);
  const cost = versionResults.cost.map((name, i) => metric(name, [0.2, 31.2, 30][i] ?? 0));
  expect(resultRows(cost, { notes: false }).at(-1)).toEqual([
    'cost',
    '+0.2 sampled tokens an answer; 31 ms an answer, the start 30 ms',
  ]);
});
