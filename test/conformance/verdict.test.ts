import { expect, it } from 'vitest';
import { type Decision, verdictOf } from './verdict.js';

const decisions: Readonly<Record<string, Decision>> = {
  'a.skipped': { outcome: 'skip', kind: 'model', reason: 'why' },
  'a.failing': { outcome: 'FAIL', kind: 'decided against', reason: 'why' },
};
const explained = [
  'ok a.good',
  'skip a.skipped: why',
  'FAIL a.failing: why (inferred rule)',
  '1 passed, 1 failed, 1 skipped',
];

it('what is explained is no fault', () => {
  expect(verdictOf(explained.join('\n'), decisions)).toEqual({
    ok: 1,
    explained: ['a.skipped', 'a.failing'],
    faults: [],
  });
});

it.each([
  ['an unexplained failure', 'FAIL b.other: why', 'FAIL b.other: why'],
  ['an unexplained skip', 'skip b.other: why', 'skip b.other: why'],
])('%s is a fault', (_, line, fault) => {
  expect(verdictOf([line, ...explained].join('\n'), decisions).faults).toEqual([fault]);
});

it('a skip that has come to fail is a fault', () => {
  const output = explained.join('\n').replace('skip a.skipped', 'FAIL a.skipped');
  expect(verdictOf(output, decisions).faults).toEqual(['FAIL a.skipped: why']);
});

it('a reason for what is ok by now is a fault', () => {
  const output = explained.join('\n').replace('FAIL a.failing: why (inferred rule)', 'ok a.failing');
  expect(verdictOf(output, decisions).faults).toEqual(['a.failing is listed as explained, and was not met']);
});

it('a run without an end is a fault', () => {
  expect(verdictOf(explained.slice(0, 3).join('\n'), decisions).faults).toEqual(['the run did not come to its end']);
});
