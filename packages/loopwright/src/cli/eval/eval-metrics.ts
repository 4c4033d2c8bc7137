/** The three results of an evaluation as metrics of a version: better than the start, not worse elsewhere, and what an answer takes. */
import type { ModelComparison, PairedComparison } from '@loopwright/loops';
import { otherComparison, type VersionChange } from '@loopwright/protocol';

type Metrics = NonNullable<VersionChange['metrics']>;

export interface EvalResults {
  readonly comparison: ModelComparison;
  /** All cases of all suites; absent without suites. */
  readonly regression?: PairedComparison;
  readonly cost?: { readonly currency: string; readonly start: number; readonly candidate: number };
}

export interface EvalNotes {
  /** On what rows, against what, and whether these were compared with what was trained on. */
  readonly evaluation: string;
  readonly regression: string;
  /** Whether it was compared with the start of its training. */
  readonly isStart: boolean;
}

/**
 * Each metric with how it was measured. Those of a comparison with something else than the start have `otherComparison` before their names: what an approval asks
 * for is what training did, and a version that is better than a worse one has not been shown to be better than what it came from.
 */
export function evalMetrics(results: EvalResults, { isStart, ...notes }: EvalNotes): Metrics {
  const metrics = ownMetrics(results, notes);
  if (isStart) return metrics;
  return Object.fromEntries(Object.entries(metrics).map(([name, metric]) => [`${otherComparison}${name}`, metric]));
}

function ownMetrics({ comparison, regression, cost }: EvalResults, notes: Omit<EvalNotes, 'isStart'>): Metrics {
  const { right, reward, tokens, latency, promptTokens } = comparison;
  const n = `n = ${tokens.n} answers of the evaluation`;
  const said = (values: Readonly<Record<string, number>>, note: string): Metrics =>
    Object.fromEntries(
      Object.entries(values).flatMap(([name, value]) =>
        Number.isFinite(value) ? [[name, { value, note: note.slice(0, 1024) }] as const] : [],
      ),
    );
  return {
    ...said(paired('eval', right), notes.evaluation),
    ...(reward === undefined ? {} : said(paired('eval/reward', reward), notes.evaluation)),
    ...(regression === undefined ? {} : said(paired('regression', regression), notes.regression)),
    ...said(paired('cost/tokens', tokens), `sampled tokens of an answer, ${n}`),
    ...said({ 'cost/prompt_tokens': promptTokens.candidate }, `tokens of a prompt, mean, ${n}`),
    ...(latency === undefined
      ? {}
      : said(
          {
            'cost/latency_p50_ms': latency.candidate.p50Ms,
            'cost/latency_p95_ms': latency.candidate.p95Ms,
            'cost/latency_start_p50_ms': latency.start.p50Ms,
            'cost/latency_start_p95_ms': latency.start.p95Ms,
            'cost/latency_n': latency.n,
          },
          'milliseconds of an answer that is asked for alone, both models by turns on one machine',
        )),
    ...(cost === undefined
      ? {}
      : said(
          { 'cost/per_1000_answers': cost.candidate, 'cost/start_per_1000_answers': cost.start },
          `${cost.currency}, ${n}`,
        )),
  };
}

function paired(name: string, { start, candidate, difference, interval, n }: PairedComparison) {
  return {
    [`${name}/value`]: candidate,
    [`${name}/start`]: start,
    [`${name}/difference`]: difference,
    [`${name}/difference_low`]: interval.low,
    [`${name}/difference_high`]: interval.high,
    [`${name}/n`]: n,
  };
}
