/** An evaluation in words. */
import type { ModelComparison, PairedComparison, RegressionOutcome } from '@loopwright/loops';
import { casesToSettle, counted, defaultMargin, escapeText, regressionOutcome } from '@loopwright/loops';
import type { Console } from '../console.js';
import { numberText } from '../runs/text.js';
import { showTable } from '../show-table.js';
import { percentText, signedText } from '../text.js';
import type { Known } from './measure.js';
import type { Suite } from './suites.js';

/** `better` or `worse` than `what`, or that it can't be told yet and about how many more problems would tell. */
export function verdictText(comparison: PairedComparison, what: string): string {
  const { outcome, difference, n, neededPairs } = comparison;
  if (outcome !== 'not-distinguishable') return `${outcome} than ${what}`;
  if (neededPairs === undefined) return `not distinguishable yet: ${equalText(comparison)}`;
  const more = neededPairs - n;
  return `not distinguishable yet: a difference of ${pointsText(difference)} would take about ${more} more rows (${neededPairs} in all, power 80 %), by an estimate from these`;
}

/** Where there is no difference to go by, what more rows would rule out. */
function equalText(comparison: PairedComparison): string {
  const seen = `no difference was seen in ${counted(comparison.n, 'row')}`;
  const known = `not more than ${(defaultMargin * 100).toFixed(0)} points worse`;
  if (regressionOutcome(comparison, defaultMargin) === 'held') return `${seen}, enough to say that it is ${known}`;
  const needed = casesToSettle(comparison, defaultMargin);
  return needed === undefined
    ? seen
    : `${seen}; about ${needed} at the same rates would say that it is ${known} (an estimate)`;
}

/** `+4.0 points`. */
export function pointsText(share: number): string {
  return `${signedText(share * 100, 1)} points`;
}

export function showComparison(comparison: ModelComparison, console: Console): void {
  const { right, reward, tokens, latency, unjudged, promptTokens } = comparison;
  const rows: string[][] = [
    [
      'right, %',
      (right.start * 100).toFixed(1),
      (right.candidate * 100).toFixed(1),
      signedText(right.difference * 100, 1),
      rangeText(right.interval.low * 100, right.interval.high * 100, 1),
      String(right.n),
    ],
    ...(reward === undefined ? [] : [pairedRow('reward', reward, 3)]),
    pairedRow('tokens', tokens, 1),
    ['prompt', promptTokens.start.toFixed(1), promptTokens.candidate.toFixed(1), '', '', String(tokens.n)],
    ...(latency === undefined
      ? []
      : (['p50Ms', 'p95Ms', 'msPerToken'] as const).map((name) => [
          { p50Ms: 'ms, p50', p95Ms: 'ms, p95', msPerToken: 'ms a token' }[name],
          numberText(Number(latency.start[name].toPrecision(3))),
          numberText(Number(latency.candidate[name].toPrecision(3))),
          '',
          '',
          String(latency.n),
        ])),
  ];
  showTable(console, ['', 'start', 'version', 'diff', '95 % interval', 'n'], rows);
  if (unjudged > 0) console.hanging('', `${unjudged} problems are left out: an answer to them could not be judged.`);
}

function rangeText(low: number, high: number, digits: number): string {
  return `${signedText(low, digits)} to ${signedText(high, digits)}`;
}

function pairedRow(name: string, { start, candidate, difference, interval, n }: PairedComparison, digits: number) {
  const range = rangeText(interval.low, interval.high, digits);
  return [name, start.toFixed(digits), candidate.toFixed(digits), signedText(difference, digits), range, String(n)];
}

/** How many were right of those that were compared until it ended. */
export function soFarText({ done, of, right }: Extract<Known, { readonly done: number }>): string {
  if (right === undefined) return `It ended after ${done} of ${of} rows: too few to compare.`;
  const { start, candidate, n, interval } = right;
  const range = `${rangeText(interval.low * 100, interval.high * 100, 1)} points at 95 %`;
  return `It ended after ${done} of ${of} rows. Right so far: ${percentText(start)} of the start, ${percentText(candidate)} of the version (${range}, n ${n}).`;
}

export interface ShownSuite extends Suite {
  readonly outcome: RegressionOutcome;
}

function undecidedText(comparison: PairedComparison, margin: number): string {
  const needed = casesToSettle(comparison, margin);
  if (needed === undefined)
    return 'undecided, and at the rates seen so far no number of cases within reach would tell (an estimate)';
  return `undecided of ${comparison.n}; about ${needed} cases in all would tell at the rates seen so far (an estimate)`;
}

export function showSuites(suites: readonly ShownSuite[], margin: number, console: Console): void {
  const rows = suites.map(({ name, comparison: { start, candidate, interval, n }, outcome }) => [
    escapeText(name),
    (start * 100).toFixed(1),
    (candidate * 100).toFixed(1),
    rangeText(interval.low * 100, interval.high * 100, 1),
    String(n),
    outcome,
  ]);
  showTable(console, ['passed, %', 'start', 'version', 'diff, 95 %', 'n', 'outcome'], rows);
  for (const suite of suites)
    if (suite.outcome === 'undecided')
      console.hanging('', `${escapeText(suite.name)}: ${undecidedText(suite.comparison, margin)}.`);
  // Not a word of it is about this evaluation.
  console.hanging(
    '',
    console.paint.dim(
      `What the outcomes mean: held, at 95 % it fell by at most ${(margin * 100).toFixed(0)} points; fell, at 95 % it fell at all; undecided, the interval allows both.`,
    ),
  );
  for (const { name, unjudged } of suites)
    if (unjudged > 0)
      console.hanging(
        '',
        `${escapeText(name)}: ${unjudged} problems are left out: an answer to them could not be judged.`,
      );
  for (const { label, otherLines } of suites)
    if (otherLines > 0)
      console.hanging(
        '',
        `${escapeText(label)}: ${counted(otherLines, 'line')} of its output are no cases: {"id": "…", "pass": true} is one.`,
      );
}
