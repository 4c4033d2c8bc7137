/** An evaluation in words. */
import type { ModelComparison, PairedComparison, RegressionOutcome } from '@loopwright/loops';
import { counted, escapeText } from '@loopwright/loops';
import type { Console } from '../console.js';
import { numberText } from '../runs/text.js';
import { formatTable, percentText, signedText } from '../text.js';
import type { Known } from './measure.js';
import type { Suite } from './suites.js';

/** `better` or `worse` than `what`, or that it can't be told yet and how many more problems would tell. */
export function verdictText({ outcome, difference, n, neededPairs }: PairedComparison, what: string): string {
  if (outcome !== 'not-distinguishable') return `${outcome} than ${what}`;
  if (neededPairs === undefined) return 'not distinguishable yet: there is no difference to go by';
  const more = neededPairs - n;
  return `not distinguishable yet: a difference of ${pointsText(difference)} would take about ${more} more rows (${neededPairs} in all, power 80 %)`;
}

/** `+4.0 points`. */
export function pointsText(share: number): string {
  return `${signedText(share * 100, 1)} points`;
}

export function showComparison(comparison: ModelComparison, console: Console): void {
  const { right, reward, tokens, latency, unjudged, promptTokens } = comparison;
  const rows: string[][] = [
    [
      'right',
      percentText(right.start),
      percentText(right.candidate),
      signedText(right.difference * 100, 1),
      `${signedText(right.interval.low * 100, 1)} to ${signedText(right.interval.high * 100, 1)} points`,
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
  for (const line of formatTable(['', 'start', 'version', 'diff', '95 % interval', 'n'], rows)) console.line(line);
  if (unjudged > 0) console.line(`${unjudged} problems are left out: an answer to them could not be judged.`);
}

function pairedRow(name: string, { start, candidate, difference, interval, n }: PairedComparison, digits: number) {
  const range = `${signedText(interval.low, digits)} to ${signedText(interval.high, digits)}`;
  return [name, start.toFixed(digits), candidate.toFixed(digits), signedText(difference, digits), range, String(n)];
}

/** How many were right of those that were compared until it ended. */
export function soFarText({ done, of, right }: Extract<Known, { readonly done: number }>): string {
  if (right === undefined) return `It ended after ${done} of ${of} rows: too few to compare.`;
  const { start, candidate, n, interval } = right;
  const range = `${signedText(interval.low * 100, 1)} to ${signedText(interval.high * 100, 1)} points at 95 %`;
  return `It ended after ${done} of ${of} rows. Right so far: ${percentText(start)} of the start, ${percentText(candidate)} of the version (${range}, n ${n}).`;
}

export interface ShownSuite extends Suite {
  readonly outcome: RegressionOutcome;
}

export function showSuites(suites: readonly ShownSuite[], margin: number, console: Console): void {
  const rows = suites.map(({ name, comparison: { start, candidate, interval, n }, outcome }) => [
    escapeText(name),
    percentText(start),
    percentText(candidate),
    `${signedText(interval.low * 100, 1)} to ${signedText(interval.high * 100, 1)} points`,
    String(n),
    outcome,
  ]);
  for (const line of formatTable(['regression suite', 'start', 'version', '95 % interval', 'n', ''], rows))
    console.line(line);
  console.line(`held: at 95 % it fell by at most ${(margin * 100).toFixed(0)} points.`);
  for (const { name, unjudged } of suites)
    if (unjudged > 0)
      console.line(`${escapeText(name)}: ${unjudged} problems are left out: an answer to them could not be judged.`);
  for (const { label, otherLines } of suites)
    if (otherLines > 0)
      console.line(
        `${escapeText(label)}: ${counted(otherLines, 'line')} of its output are no cases: {"id": "…", "pass": true} is one.`,
      );
}
