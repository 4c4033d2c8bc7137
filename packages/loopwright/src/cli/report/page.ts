/** The page of a report: one file that loads nothing and runs nothing. */
import { alarmText } from '@loopwright/loops';
import type { StoredRun } from '@loopwright/loops/node';
import { shellText } from '../../shell-text.js';
import { durationOf, durationText, gateText, lastStep, numberText } from '../runs/text.js';
import { chart, type Point } from './chart.js';
import { html } from './html.js';
import { type ShownSamples, samplesSection } from './samples-section.js';
import { style } from './style.js';

/** Shown first; the others are folded away. */
const main = [
  ...['validation/accuracy', 'validation/loss', 'reward/mean', 'reward/std_within_group', 'loss/mean', 'kl/base'],
  ...[
    'ratio/mean',
    'staleness/mean',
    'completion/length_mean',
    'completion/truncated_share',
    'groups/dead',
    'grade/unparsed_share',
    'grade/errors',
    'grade/timeouts',
  ],
  ...['tokens/sampled', 'tokens/trained', 'engine/busy_share', 'cost/total'],
] as const;

/** Metrics that bound another, and what of it lies between them. */
const bounds: Readonly<Record<string, readonly [low: string, high: string, between: string]>> = {
  'validation/accuracy': ['validation/low', 'validation/high', '95 % interval'],
  'validation/loss': ['validation/loss_low', 'validation/loss_high', '95 % interval'],
  'ratio/mean': ['ratio/min', 'ratio/max', 'least to most'],
  'completion/length_mean': ['completion/length_p05', 'completion/length_p95', 'middle 90 %'],
  'staleness/mean': ['staleness/p05', 'staleness/p95', 'middle 90 %'],
};

const policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

export function page(run: StoredRun, samples: ShownSamples): string {
  const { record, state } = run;
  const names = [...new Set(run.steps.flatMap(({ metrics }) => Object.keys(metrics)))].sort();
  const isMain = (name: string): boolean => main.some((one) => one === name) || name.startsWith('time/');
  const shown = [...main.filter((name) => names.includes(name)), ...names.filter((name) => name.startsWith('time/'))];
  const drawnAsBands = shown.flatMap((name) => bounds[name]?.slice(0, 2) ?? []);
  const rest = names.filter((name) => !isMain(name) && !drawnAsBands.includes(name));
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${html(record.name)}</title><style>${style}</style></head><body>
<header><h1>${html(record.name)}</h1><p><span class="state ${state}">${state}</span> ${lastStep(run)} steps in ${durationText(durationOf(run))}, begun ${html(record.startedAt)}</p>${measuredText(run)}${record.error === undefined ? '' : `<p>${html(record.error.message)}</p>`}</header>
<main>
<section><h2>Curves</h2>${curves(run, shown)}${rest.length === 0 ? '' : `<details><summary>${rest.length} more metrics</summary>${curves(run, rest)}</details>`}</section>
${alarms(run)}<section><h2>Samples</h2>${samplesSection(samples)}</section>
<section><h2>Settings</h2>${facts(run)}</section>
</main></body></html>
`;
}

function alarms({ alarms: raised }: StoredRun): string {
  if (raised.length === 0) return '';
  return `<section><h2>Alarms</h2><ul>${raised.map((alarm) => `<li>${html(alarmText(alarm))}</li>`).join('')}</ul></section>\n`;
}

/** What came of it on problems that aren't trained on: the first and the last measurement. */
function measuredText(run: StoredRun): string {
  const measured = ['validation/accuracy', 'validation/loss'].flatMap((name) => {
    const points = pointsOf(run, name);
    const [first, last] = [points[0], points.at(-1)];
    if (first === undefined || last === undefined) return [];
    const n = run.steps.findLast(({ metrics }) => metrics[name] !== undefined)?.metrics['validation/n'];
    const sure =
      last.low === undefined || last.high === undefined ? '' : `, 95 % interval ${short(last.low)}–${short(last.high)}`;
    const from = points.length === 1 ? '' : `${short(first.value)} → `;
    return [
      `<p>${name} <b>${from}${short(last.value)}</b> at step ${last.step}${n === undefined ? '' : ` (n = ${n}${sure})`}</p>`,
    ];
  });
  return measured.join('');
}

function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/** Curves; and below them, in words, what has none because it never changed or was measured once. */
function curves(run: StoredRun, names: readonly string[]): string {
  const all = names.map((name) => ({ name, points: pointsOf(run, name) }));
  const isCurve = ({ points }: { readonly points: readonly Point[] }): boolean =>
    new Set(points.flatMap(({ value, low = value, high = value }) => [value, low, high])).size > 1 && points.length > 1;
  const drawn = all.filter(isCurve).map(({ name, points }) => chart(name, points, bounds[name]?.[2]));
  const flat = all.filter((each) => !isCurve(each)).flatMap(({ name, points }) => flatText(name, points));
  return [
    drawn.length === 0 ? '' : `<div class="charts">${drawn.join('\n')}</div>`,
    flat.length === 0 ? '' : `<dl class="flat">${flat.join('')}</dl>`,
  ].join('');
}

function flatText(name: string, points: readonly Point[]): string[] {
  const [point] = points;
  if (point === undefined) return [];
  const note = points.length === 1 ? `step ${point.step} only` : `at all ${points.length} steps`;
  return [`<div><dt>${html(name)}</dt><dd><b>${numberText(point.value)}</b> ${note}</dd></div>`];
}

function pointsOf({ steps }: StoredRun, name: string): Point[] {
  const [lowName, highName] = bounds[name] ?? [];
  return steps.flatMap(({ step, metrics }) => {
    const value = metrics[name];
    if (value === undefined) return [];
    const low = lowName === undefined ? undefined : metrics[lowName];
    const high = highName === undefined ? undefined : metrics[highName];
    return [{ step, value, ...(low === undefined || high === undefined ? {} : { low, high }) }];
  });
}

function facts({ record }: StoredRun): string {
  const { seeds, data, versions, source, command, usage = [], cost, graderGates = [] } = record;
  const rows: [string, string][] = [
    ['run', record.id],
    ...graderGates.map((gate): [string, string] => ['grader test', gateText(gate)]),
    ...Object.entries(seeds).map(([name, seed]): [string, string] => [`seed: ${name}`, String(seed)]),
    ...Object.entries(data).map(([name, { rows: count, sha256 }]): [string, string] => [
      `data: ${name}`,
      `${count === undefined ? '' : `${count} rows, `}sha256 ${sha256}`,
    ]),
    [
      'commit',
      source === null
        ? 'not in a git repository'
        : `${source.commit}${source.dirty ? ', with changes that are not in it' : ''}`,
    ],
    ['node', `${versions.node}, ${versions.platform}`],
    ...Object.entries(versions.packages),
    ['command', shellText(command.argv)],
    ...usage.map((used): [string, string] => [
      `used: ${used.baseModel}`,
      `${used.prefillTokens} tokens read, ${used.sampleTokens} sampled, ${used.trainingTokens} trained`,
    ]),
    ...(cost === undefined ? [] : [['cost', `${cost.total.toFixed(6)} ${cost.currency}`] as [string, string]]),
  ];
  const table = rows
    .map(([name, value]) => `<tr><th scope="row">${html(name)}</th><td>${html(value)}</td></tr>`)
    .join('');
  return `<pre>${html(JSON.stringify(record.config, null, 2))}</pre><table>${table}</table>`;
}
