/** `loopwright runs compare`: two runs beside each other. */
import { escapeText } from '@loopwright/loops';
import { type ConfigChange, compareRuns, readRun, type StoredRun } from '@loopwright/loops/node';
import type { CommandContext } from '../context.js';
import { formatTable } from '../text.js';
import { tellDamage } from './damage.js';
import { folderText, lastStep, numberText } from './text.js';

export async function compareCommand(
  { a, b }: { readonly a: string; readonly b: string },
  { console }: CommandContext,
): Promise<void> {
  const [left, right] = await Promise.all([readRun(a), readRun(b)]);
  const { changes, metrics, onlyA, onlyB } = compareRuns(left, right);
  console.event({ type: 'comparison', a: left.folder, b: right.folder, changes, metrics, onlyA, onlyB });
  console.line(`a  ${describe(left)}`);
  console.line(`b  ${describe(right)}`);
  console.line();
  if (changes.length === 0) console.line('Settings, seeds, data, versions and commit are the same.');
  else {
    const rows = changes.map((change) => [escapeText(change.path), valueText(change, 'a'), valueText(change, 'b')]);
    for (const line of formatTable(['set otherwise', 'a', 'b'], rows)) console.line(line);
  }
  console.line();
  if (metrics.length === 0) console.line('They have no metric at the same step.');
  else {
    const rows = metrics.map((metric) => [
      escapeText(metric.name),
      String(metric.n),
      numberText(metric.meanA),
      numberText(metric.meanB),
      numberText(metric.meanB - metric.meanA),
      String(metric.step),
      numberText(metric.lastA),
      numberText(metric.lastB),
      metric.firstDifference === undefined ? 'equal' : `${metric.differing} from step ${metric.firstDifference}`,
    ]);
    const head = ['metric', 'n', 'mean a', 'mean b', 'b − a', 'step', 'a there', 'b there', 'steps that differ'];
    for (const line of formatTable(head, rows)) console.line(line);
    console.line();
    console.line('n: steps that both have; means are over those, and the step is the last of them.');
  }
  for (const [name, only] of [
    ['a', onlyA],
    ['b', onlyB],
  ] as const) {
    if (only.length > 0) console.line(`Only in ${name}: ${only.map(escapeText).join(', ')}`);
  }
  for (const run of [left, right]) await tellDamage(run, console);
}

function describe(run: StoredRun): string {
  return `${folderText(run)}: ${run.state}, ${lastStep(run)} steps`;
}

function valueText(change: ConfigChange, side: 'a' | 'b'): string {
  const value = change[side];
  if (value === undefined) return '-';
  const text = escapeText(typeof value === 'string' ? value : JSON.stringify(value));
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
