/** What a replay or a comparison found, in words: a line for each finding. */
import type { FieldDifference, Finding, ValueDifference, WeightsDifference } from '@loopwright/server';

/** What the two sides are called, such as `recorded` and `now`. */
export type Sides = readonly [string, string];

export function findingText(finding: Finding, sides: Sides): string {
  switch (finding.type) {
    case 'inputs': {
      const hashes = `inputs ${finding.values[0]} ${sides[0]}, ${finding.values[1]} ${sides[1]}`;
      return finding.difference === undefined ? hashes : `${hashes}: ${differenceText(finding.difference, sides)}`;
    }
    case 'outcome':
      return `${finding.values[0]} ${sides[0]}, ${finding.values[1]} ${sides[1]}`;
    case 'result':
      return `result: ${differenceText(finding.difference, sides)}`;
    case 'weights':
      return weightsText(finding.difference);
    case 'damaged':
      return `its ${finding.what} can’t be read: ${finding.message}`;
    case 'not-run':
      return finding.message;
    case 'missing':
      return `${finding.values[0] ?? 'no operation'} ${sides[0]}, ${finding.values[1] ?? 'no operation'} ${sides[1]}`;
    default:
      return finding satisfies never;
  }
}

/** `lr: 0.1 recorded, 0.2 now (off by 1.0e-1)`. */
export function fieldText({ path, values, size }: FieldDifference, sides: Sides): string {
  if (values === undefined) return `${path} (what it says is not shown)`;
  const off = size === undefined ? '' : ` (off by ${sizeText(size)})`;
  return `${path} ${valueText(values[0])} ${sides[0]}, ${valueText(values[1])} ${sides[1]}${off}`;
}

/** Two digits and an exponent. */
export function sizeText(size: number): string {
  return size.toExponential(1);
}

/** The arrays that differ most, one a line. */
export function arrayLines({ arrays }: WeightsDifference, limit: number): string[] {
  return arrays
    .slice(0, limit)
    .map(
      ({ array, count, of, largest, relative }) =>
        `${array}: ${count} of ${of} values, by ${sizeText(largest)} at most (${sizeText(relative)} of its largest)`,
    );
}

function differenceText({ first, count, largest }: ValueDifference, sides: Sides): string {
  const [field, size] = Object.entries(largest).sort(([, a], [, b]) => b - a)[0] ?? [];
  const most = field === undefined || size === undefined ? '' : `, by ${sizeText(size)} at most, in ${field}`;
  return `${fieldText(first, sides)}${count > 1 ? `; ${count} values differ${most}` : ''}`;
}

function weightsText({ files, arrays, arraysCompared }: WeightsDifference): string {
  const [worst] = arrays;
  const what = `saved files differ: ${files.join(', ')}`;
  if (worst === undefined) return what;
  return `${what}; ${arrays.length} of ${arraysCompared} arrays, most of all ${worst.array}, by ${sizeText(worst.largest)}`;
}

function valueText(value: number | string | boolean | null): string {
  return value === null ? 'nothing' : String(value);
}
