/** Two runs beside each other: in what they were set otherwise, and how far their numbers are apart at the same steps. */
import { mean } from '../statistics/advantages.js';
import { type ConfigChange, compareConfigs } from './compare-configs.js';
import { plainConfig } from './plain-config.js';
import type { StoredRun } from './read-run.js';

export interface MetricDifference {
  readonly name: string;
  /** Steps at which both have it: the n of the means. */
  readonly n: number;
  /** Means over those steps. */
  readonly meanA: number;
  readonly meanB: number;
  /** The last step at which both have it, and what it was there. */
  readonly step: number;
  readonly lastA: number;
  readonly lastB: number;
  /** Steps of n at which they are not the same number. */
  readonly differing: number;
  /** The first of those; absent where there is none. */
  readonly firstDifference?: number;
}

export interface RunComparison {
  /** Of settings, seeds, data, versions and commit. */
  readonly changes: readonly ConfigChange[];
  /** Of metrics that both have at some step, by name. */
  readonly metrics: readonly MetricDifference[];
  /** Metrics that only one has. */
  readonly onlyA: readonly string[];
  readonly onlyB: readonly string[];
}

/** Compares step by step: a step that only one has counts for nothing. */
export function compareRuns(a: StoredRun, b: StoredRun): RunComparison {
  const [left, right] = [seriesOf(a), seriesOf(b)];
  const metrics = [...left].flatMap(([name, valuesA]): MetricDifference[] => {
    const valuesB = right.get(name);
    const steps = valuesB === undefined ? [] : [...valuesA.keys()].filter((step) => valuesB.has(step));
    const last = steps.at(-1);
    if (valuesB === undefined || last === undefined) return [];
    const of = (values: ReadonlyMap<number, number>) => steps.map((step) => values.get(step)!); // true: both have it at these
    const differing = steps.filter((step) => valuesA.get(step) !== valuesB.get(step));
    const [first] = differing;
    return [
      {
        ...{ name, n: steps.length, meanA: mean(of(valuesA)), meanB: mean(of(valuesB)) },
        ...{ step: last, lastA: valuesA.get(last)!, lastB: valuesB.get(last)! }, // true: as above
        differing: differing.length,
        ...(first === undefined ? {} : { firstDifference: first }),
      },
    ];
  });
  const shared = new Set(metrics.map(({ name }) => name));
  const rest = (series: ReadonlyMap<string, unknown>) => [...series.keys()].filter((name) => !shared.has(name)).sort();
  return {
    changes: compareConfigs(settingsOf(a), settingsOf(b)),
    metrics: metrics.sort((x, y) => x.name.localeCompare(y.name)),
    onlyA: rest(left),
    onlyB: rest(right),
  };
}

/** The values of each metric by step, in order. */
export function seriesOf({ steps }: Pick<StoredRun, 'steps'>): Map<string, Map<number, number>> {
  const series = new Map<string, Map<number, number>>();
  for (const { step, metrics } of steps) {
    for (const [name, value] of Object.entries(metrics)) {
      const values = series.get(name) ?? new Map<number, number>();
      series.set(name, values.set(step, value));
    }
  }
  return series;
}

function settingsOf({ record: { config, seeds, data, versions, source } }: StoredRun) {
  return plainConfig({ config, seeds, data, versions, source });
}
