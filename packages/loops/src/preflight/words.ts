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
  /** Of an episode: what stands before its first answer. */
  readonly promptTokens: number;
  /** Of all its completions. */
  readonly completionTokens: number;
  /** Tokens of prompts that the sampler read, as they are metered: a prompt once for all its answers, those of episodes each time. */
  readonly prefillTokens: number;
  /** Tokens that a step over all its completions trains on, as they are metered: with what stands before and between answers. */
  readonly trainingTokens: number;
}

/** What a prompt's answers come to once each was drawn until the grader could read it. No content, but the id. */
export interface FormRate {
  readonly id: string;
  /** Draws of an answer at most, its first one included. */
  readonly mostDraws: number;
  /** Answers that could be read in the end. */
  readonly readable: number;
  /** Of these. */
  readonly correct: number;
  /** Answers that could not be read in any draw. */
  readonly neverRead: number;
  /** Draws, after the first, that the grader failed on: their answers are left out. */
  readonly graderErrors: number;
  /** Draws after the first. */
  readonly drawnAgain: number;
  /** Of these draws. */
  readonly sampledTokens: number;
  readonly prefillTokens: number;
}

/** Pass rates of the same prompts, as answers come and given that they can be read. */
export interface FormComparison {
  /** Prompts: the denominator of both means. */
  readonly n: number;
  readonly asItComes: number;
  readonly readable: number;
  /** readable − asItComes. */
  readonly difference: number;
  /** Of the difference, at 95 %, prompts being what varies (Student). */
  readonly interval: Interval;
}

export interface MeasuredFormatGap {
  readonly mostDraws: number;
  /** Prompts with an answer that could be graded; of these, those without one that could be read. */
  readonly prompts: { readonly measured: number; readonly neverRead: number };
  /** Answers that could not be read at first; of these, those that could not be read in any draw. */
  readonly answers: { readonly unreadable: number; readonly neverRead: number };
  /** Over prompts with an answer that could be read; absent where these are fewer than two. */
  readonly compared?: FormComparison;
  /** Over all prompts, those that could never be read taken as wrong; absent where prompts are fewer than two. */
  readonly atLeast?: FormComparison;
  /** Likewise, taken as right. */
  readonly atMost?: FormComparison;
  /** What it took: draws after the first, and their tokens. */
  readonly draws: { readonly count: number; readonly sampledTokens: number; readonly prefillTokens: number };
  /** `form`: it is worth five points or more; `not-form`: it is worth less; `not-distinguishable` by these prompts. */
  readonly verdict: 'form' | 'not-form' | 'not-distinguishable';
}

/** What drawing again until answers can be read will take, before it is done. */
export interface FormatGapForecast {
  readonly mostDraws: number;
  /** Answers that are to be drawn again. */
  readonly answers: number;
  readonly draws: Forecast;
  readonly tokens: { readonly prefill: Forecast; readonly sampled: Forecast };
  /** Absent where no steps were measured. */
  readonly seconds?: Forecast;
  /** Absent without prices. */
  readonly cost?: Forecast & { readonly currency: string };
}

/** A number with what it may come to. */
export interface Forecast {
  readonly expected: number;
  readonly low: number;
  readonly high: number;
}

/** What some steps took that were measured before the run, on problems of the task, in the mean. */
export interface MeasuredSteps {
  /** Steps that were measured, one before them to get warm left out. */
  readonly n: number;
  /** Problems of each. */
  readonly groups: number;
  readonly groupSize: number;
  readonly rank: number;
  readonly sampledTokens: number;
  readonly trainingTokens: number;
  /** Milliseconds in which answers were sampled and judged. */
  readonly collectMs: number;
  /** Of these, milliseconds in which the engine was asked for nothing: what the grader adds. */
  readonly graderMs: number;
  /** The pass, with gradients. */
  readonly passMs: number;
  /** The optimizer step, and a sampler of the new weights. */
  readonly updateMs: number;
  /** Of a whole step, the quickest and the slowest. */
  readonly minMs: number;
  readonly maxMs: number;
  /** Bytes of the engine at their peak until then; absent where nobody counts. */
  readonly heldBytes?: number;
}

/** What a run is taken to need. */
export interface RunForecast {
  readonly steps: number;
  readonly tokens: { readonly prefill: Forecast; readonly sampled: Forecast; readonly trained: Forecast };
  /** Of its steps, evaluations and the start left out; absent where nothing was measured. */
  readonly seconds?: Forecast;
  /**
   * Bytes of the engine at their peak, and its limit; absent where they aren't known, as with a server by URL. `expected` and `high` are upper bounds, with answers
   * of twice the mean length and of `maxTokens`; `low` is what the engine `held` in the measured steps or, where that isn't known, the bound at the mean length.
   */
  readonly memory?: Forecast & { readonly limit: number; readonly held?: number };
  /** Absent without prices. */
  readonly cost?: Forecast & { readonly currency: string };
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
  /** Pass rate of the completions that could be read, and of all; `measured` where answers were drawn until they could be read. */
  readonly formatGap: {
    readonly unparsedShare: number;
    readonly ofParsed: number;
    readonly ofAll: number;
    readonly measured?: MeasuredFormatGap;
  };
  readonly forecast: RunForecast;
  /** Absent where nothing was measured. */
  readonly step?: MeasuredSteps;
  readonly findings: readonly Finding[];
}

export interface Preflight<P extends Problem> {
  readonly report: PreflightReport;
  readonly rates: readonly PromptRate[];
  /** Problems with a measured pass rate from 10 to 90 %. */
  readonly useful: readonly P[];
}
