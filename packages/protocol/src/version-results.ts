/** The three results that are to be known of a version before it is approved, and the metrics by which each is told. */
import type { VersionMetric } from './registry.js';

/** `loopwright eval` attaches them. */
export const versionResults = {
  /** Better than the start of its training, on rows that it was not trained on: a paired difference. */
  evaluation: ['eval/difference', 'eval/difference_low', 'eval/difference_high', 'eval/n'],
  /** Not worse at what it could before. */
  regression: ['regression/difference', 'regression/difference_low', 'regression/difference_high', 'regression/n'],
  /** What an answer takes, beside the start. */
  cost: ['cost/tokens/difference', 'cost/latency_p50_ms', 'cost/latency_start_p50_ms'],
} as const;

/** Before the names of the same metrics of a comparison with another version than what training began with: they are no result that an approval asks for. */
export const otherComparison = 'against/';

export type VersionResult = keyof typeof versionResults;

/** Why a version is not to be approved without a reason. */
export interface ApprovalGap {
  readonly result: VersionResult;
  /** `fell`: at 95 % it is worse than the start, or passes fewer cases. */
  readonly why: 'missing' | 'fell';
}

/** Empty where all three are there and nothing fell; that a difference is not distinguishable is a result. */
export function approvalGaps(metrics: readonly Pick<VersionMetric, 'name' | 'value'>[]): ApprovalGap[] {
  const values = new Map(metrics.map(({ name, value }) => [name, value]));
  return Object.entries(versionResults).flatMap(([name, needed]): ApprovalGap[] => {
    const result = name as VersionResult; // true: its own keys
    if (needed.some((metric) => !values.has(metric))) return [{ result, why: 'missing' }];
    const high = result === 'cost' ? 0 : (values.get(versionResults[result][2]) ?? 0);
    return high < 0 ? [{ result, why: 'fell' }] : [];
  });
}
