/** The results that an approval asks for, as they were measured. */
import { escapeText } from '@loopwright/loops';
import { approvalGaps, type VersionMetric, type VersionResult, versionResults } from '@loopwright/protocol';
import { signedText } from '../text.js';

/** Of each result its difference from the start with interval and n, and with `notes` how it was measured; or that it is missing, or fell. */
export function resultRows(
  metrics: readonly Pick<VersionMetric, 'name' | 'value' | 'note'>[],
  { notes }: { readonly notes: boolean },
): [string, string][] {
  const found = new Map(metrics.map((metric) => [metric.name, metric]));
  const gaps = new Map(approvalGaps(metrics).map(({ result, why }) => [result, why]));
  const results = Object.keys(versionResults) as VersionResult[]; // true: its own keys
  return results.map((result) => {
    const why = gaps.get(result);
    if (why === 'missing') return [result, 'missing'];
    const [first] = versionResults[result];
    const note = notes ? escapeText(found.get(first)?.note ?? '') : '';
    const value = (name: string): number => found.get(name)?.value ?? Number.NaN;
    const figures = result === 'cost' ? costText(value) : pairedText(result, value);
    return [result, `${why === 'fell' ? 'fell: ' : ''}${figures}${note === '' ? '' : `; ${note}`}`];
  });
}

function pairedText(result: 'evaluation' | 'regression', value: (name: string) => number): string {
  const [difference, low, high, n] = versionResults[result].map(value) as [number, number, number, number]; // true: as many as their names
  const points = (share: number): string => signedText(100 * share, 1);
  return `${points(difference)} points (at 95 % from ${points(low)} to ${points(high)}), n = ${n}`;
}

function costText(value: (name: string) => number): string {
  const [tokens, after, before] = versionResults.cost.map(value) as [number, number, number]; // true: as many as their names
  return `${signedText(tokens, 1)} sampled tokens an answer; ${after.toFixed(0)} ms an answer, the start ${before.toFixed(0)} ms`;
}
