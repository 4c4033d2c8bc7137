/** A preflight for people. */
import { escapeText, type Forecast, type PreflightReport, type RunForecast } from '@loopwright/loops';
import type { Console } from '../console.js';
import { showFindings } from '../findings-text.js';
import { durationText } from '../runs/text.js';
import { bytesText, countText, percentText } from '../text.js';
import { formatGapRows } from './format-gap-text.js';
import { rangeText } from './range-text.js';

export function showPreflight(report: PreflightReport, console: Console): void {
  const { prompts, passRate, histogram, deadGroups, formatGap, forecast, findings, outcome } = report;
  const most = Math.max(1, ...histogram);
  const { bold, green, red } = console.paint;
  console.line(`${bold(escapeText(report.task))}: ${prompts.measured} of ${prompts.train} prompts measured`);
  console.line();
  console.line('  pass rate                             prompts');
  for (const [i, count] of histogram.entries()) {
    const bar = '█'.repeat(Math.round((30 * count) / most)).padEnd(30);
    console.line(`  ${String(i * 10).padStart(3)} % ${bar} ${count}`);
  }
  console.line();
  const { low, high } = passRate.interval;
  const interval = `95 % interval ${percentText(low)} to ${percentText(high)}`;
  console.table([
    ['right', `${percentText(passRate.share)} (n = ${passRate.n}, ${interval})`],
    ['10–90 %', `${prompts.useful} of ${prompts.measured} prompts`],
    [
      'dead groups',
      Number.isFinite(deadGroups.expectedShare)
        ? `${percentText(deadGroups.expectedShare)} expected, of ${deadGroups.groupSize}`
        : 'not known: nothing could be graded',
    ],
    [
      'unreadable',
      `${percentText(formatGap.unparsedShare)}; ${percentText(formatGap.ofParsed)} of the others are right`,
    ],
    ...(formatGap.measured === undefined ? [] : formatGapRows(formatGap.measured)),
  ]);
  console.line();
  console.line(`  A run of ${forecast.steps} steps is expected to take`);
  console.table(forecastRows(forecast));
  if (findings.length > 0) console.line();
  showFindings(findings, console);
  console.line();
  console.line(outcome === 'go' ? green('Go.') : red('No go.'));
}

function forecastRows({ tokens, seconds, memory, cost }: RunForecast): (readonly [string, string])[] {
  const counts = (forecast: Forecast): string => rangeText(forecast, countText);
  return [
    ['sampled', `${counts(tokens.sampled)} tokens, and ${countText(tokens.prefill.expected)} of prompts`],
    ['trained', `${counts(tokens.trained)} tokens`],
    ['time', seconds === undefined ? 'not measured' : rangeText(seconds, (value) => durationText(1000 * value))],
    [
      'memory',
      memory === undefined
        ? 'that of the server'
        : `${memory.held === undefined ? '' : `${bytesText(memory.low)} held so far, `}at most ${bytesText(memory.expected)}, with the longest answers ${bytesText(memory.high)}; the engine may use ${bytesText(memory.limit)}`,
    ],
    [
      'cost',
      cost === undefined
        ? 'no prices given (--prices)'
        : rangeText(cost, (money) => `${money.toFixed(4)} ${cost.currency}`),
    ],
  ];
}
