/** The words of preflight. */
import type { Problem } from '../environments/environment.js';
import type { Finding } from '../findings.js';
import type { Interval } from '../statistics/intervals.js';

/** What was measured of one prompt. No content, but the id. */
export interface PromptRate {
  readonly id: string;
  /** Completions that were graded. */
  readonly n: number;
  readonly correct: number;
  /** correct / n; 0 where nothing could be graded. */
  readonly passRate: number;
  readonly sampled: number;
  readonly unparsed: number;
  readonly truncated: number;
  readonly graderErrors: number;
  readonly promptTokens: number;
  /** Of all its completions. */
  readonly completionTokens: number;
}

/** A number with what it may come to. */
export interface Forecast {
  readonly expected: number;
  readonly low: number;
  readonly high: number;
}

export interface PreflightReport {
  readonly task: string;
  readonly outcome: 'go' | 'no-go';
  readonly prompts: { readonly train: number; readonly measured: number; readonly useful: number };
  /** Right of graded completions, and its 95 % interval (Wilson; completions of a prompt are alike, so it is a little too narrow). */
  readonly passRate: {
    readonly share: number;
    readonly correct: number;
    readonly n: number;
    readonly interval: Interval;
  };
  /** Prompts in ten parts of pass rate. */
  readonly histogram: readonly number[];
  readonly deadGroups: { readonly groupSize: number; readonly expectedShare: number };
  /** Pass rate of the completions that could be read, and of all. */
  readonly formatGap: { readonly unparsedShare: number; readonly ofParsed: number; readonly ofAll: number };
  /** Tokens of the whole run. */
  readonly tokens: { readonly sampled: Forecast; readonly trained: Forecast };
  readonly findings: readonly Finding[];
}

export interface Preflight<P extends Problem> {
  readonly report: PreflightReport;
  readonly rates: readonly PromptRate[];
  /** Problems with a measured pass rate from 10 to 90 %. */
  readonly useful: readonly P[];
}
