/** Large batches: cut into requests that a server takes, and put together again. */
import { complaint, type Datum, type PassResult } from '@loopwright/protocol';
import type { ForwardBackwardOutput } from './training-calls.js';

/** Bounds of one request, as the published client keeps them. */
export const batchLimits = { datums: 1024, bytes: 10_000_000 } as const;
/** Estimate per token and per tensor value in JSON. */
const bytesPerNumber = 10;

function estimatedBytes(datum: Datum): number {
  const tensors = [
    datum.targetTokens,
    datum.weights,
    datum.advantages,
    datum.logprobs,
    datum.refLogProb,
    datum.temperature,
  ];
  return bytesPerNumber * tensors.reduce((sum, tensor) => sum + (tensor?.data.length ?? 0), datum.modelInput.length);
}

/** @throws `invalid_argument` unless it is a list of something */
export function checkBatch(data: readonly unknown[]): void {
  if (Array.isArray(data) && data.length > 0) return;
  const got = Array.isArray(data) ? 'none' : typeof data;
  throw complaint({ field: 'data', expected: 'an array of one or more datums', got });
}

/** Consecutive parts within the limits, in order; a datum that is too large by itself stands alone. */
export function splitBatch(
  data: readonly Datum[],
  limits: { readonly datums: number; readonly bytes: number } = batchLimits,
): Datum[][] {
  const parts: Datum[][] = [];
  let part: Datum[] = [];
  let bytes = 0;
  for (const datum of data) {
    const size = estimatedBytes(datum);
    if (part.length > 0 && (part.length >= limits.datums || bytes + size > limits.bytes)) {
      parts.push(part);
      part = [];
      bytes = 0;
    }
    part.push(datum);
    bytes += size;
  }
  parts.push(part);
  return parts;
}

/**
 * How a metric of several parts becomes one, by its name (last part after `/`, `:` or `_`):
 * `sum`, `count`, `num`, `tokens` are added up; `max` and `min` are what they say; `norm`, `step`, `lr` are those of the last part;
 * everything else is a mean per datum, weighted by the datums of each part.
 */
const rules: readonly (readonly [RegExp, (values: readonly Weighted[]) => number])[] = [
  [/(^|[/:_])(sum|count|num|tokens)$/, (values) => values.reduce((sum, { value }) => sum + value, 0)],
  [/(^|[/:_])max$/, (values) => Math.max(...values.map(({ value }) => value))],
  [/(^|[/:_])min$/, (values) => Math.min(...values.map(({ value }) => value))],
  [/(^|[/:_])(norm|step|lr)$/, (values) => values.at(-1)?.value ?? Number.NaN],
];

interface Weighted {
  readonly value: number;
  readonly weight: number;
}

function weightedMean(values: readonly Weighted[]): number {
  const weight = values.reduce((sum, entry) => sum + entry.weight, 0);
  return values.reduce((sum, entry) => sum + entry.value * entry.weight, 0) / weight;
}

/** What {@link mergeMetrics} needs of a part. */
interface Measured {
  readonly metrics: Readonly<Record<string, number>>;
  readonly outputs: readonly unknown[];
}

function mergeMetrics(parts: readonly Measured[]): Record<string, number> {
  const values = new Map<string, Weighted[]>();
  for (const { metrics, outputs } of parts) {
    for (const [name, value] of Object.entries(metrics)) {
      const list = values.get(name) ?? [];
      list.push({ value, weight: Math.max(1, outputs.length) });
      values.set(name, list);
    }
  }
  const merge = (name: string) => rules.find(([pattern]) => pattern.test(name))?.[1] ?? weightedMean;
  return Object.fromEntries([...values].map(([name, list]) => [name, merge(name)(list)]));
}

/** One result for the whole batch: outputs in input order, sums added up, metrics by the rules above. */
export function mergePasses(parts: readonly PassResult[]): PassResult {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  return {
    outputs: parts.flatMap(({ outputs }) => outputs),
    lossSum: parts.reduce((sum, part) => sum + part.lossSum, 0),
    metrics: mergeMetrics(parts),
    trainingTokens: parts.reduce((sum, part) => sum + part.trainingTokens, 0),
  };
}

/** What `forwardBackward` gave for the parts of a batch, as it would have given it for the whole. */
export function mergePassOutputs(parts: readonly ForwardBackwardOutput[]): ForwardBackwardOutput {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  return {
    outputs: parts.flatMap(({ outputs }) => outputs),
    metrics: mergeMetrics(parts),
    trainingTokens: parts.reduce((sum, part) => sum + part.trainingTokens, 0),
  };
}
