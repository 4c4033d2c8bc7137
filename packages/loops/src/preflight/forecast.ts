/** What a run will take: tokens, time, memory, cost, each with a range. */
import type { TokenUsage } from '@loopwright/protocol';
import { mean } from '../statistics/advantages.js';
import type { ResolvedSettings } from '../tasks/settings.js';
import type { Forecast, MeasuredSteps, PromptRate, RunForecast } from './words.js';

/** What an engine holds at once in a run. */
export interface RunSize {
  /** Answers that are sampled at once. */
  readonly rows: number;
  /** Of the longest prompt. */
  readonly promptTokens: number;
  /** Of an answer. */
  readonly newTokens: number;
}

export interface ForecastOptions {
  readonly rates: readonly PromptRate[];
  readonly settings: ResolvedSettings;
  /** Expected; NaN where it is not known. */
  readonly deadShare: number;
  /** Each answer of an episode has a prompt of its own. */
  readonly isEpisodes: boolean;
  readonly step: MeasuredSteps | undefined;
  readonly memory: MemoryModel | undefined;
  readonly prices: PriceModel | undefined;
}

/** Predicts what the engine will hold. */
export interface MemoryModel {
  /** Bytes that it may hold. */
  readonly limit: number;
  bytes(size: RunSize): number;
  /** Bytes that it has held at most so far; undefined where nobody counts. Asked once steps were measured. */
  readonly held?: () => Promise<number | undefined>;
}

export interface PriceModel {
  readonly currency: string;
  /** Undefined where the model has no price. */
  cost(usage: TokenUsage): number | undefined;
}

/** Lengths drift as a model learns: the range goes from half of what was measured to twice, within `maxTokens`. */
const drift = { low: 0.5, high: 2 } as const;
/** Beside what was seen to differ between steps: a machine gets warm, and others use it too. */
const pace = { low: 0.8, high: 1.5 } as const;

/** One case of three. */
interface Case {
  readonly completionTokens: number;
  readonly liveShare: number;
}

/** Over means of prompts; a prompt without completions counts in none. */
export function forecastRun(options: ForecastOptions): RunForecast {
  const { settings, deadShare, step, memory, prices } = options;
  const { groupsPerStep, groupSize, steps, maxTokens, maxTurns } = settings;
  const perStep = tokensPerStep(options);
  const length = perStep.completion;
  const turns = options.isEpisodes ? maxTurns : 1;
  const live = Number.isFinite(deadShare) ? 1 - deadShare : 1;
  const cases = {
    expected: { completionTokens: length, liveShare: live },
    low: { completionTokens: drift.low * length, liveShare: live / 2 },
    high: { completionTokens: Math.min(maxTokens * turns, drift.high * length), liveShare: 1 },
  } satisfies Readonly<Record<keyof Forecast, Case>>;
  const inEach = (of: (each: Case) => number): Forecast => ({
    expected: of(cases.expected),
    low: of(cases.low),
    high: of(cases.high),
  });
  const completions = groupsPerStep * groupSize;
  const sampled = ({ completionTokens }: Case): number => completions * completionTokens;
  const trained = ({ completionTokens, liveShare }: Case): number =>
    liveShare * completions * Math.max(0, perStep.training - length + completionTokens);
  const prefill = groupsPerStep * perStep.prefill;
  const run = (of: (each: Case) => number) => rounded(inEach((each) => steps * of(each)));
  const tokens = { prefill: run(() => prefill), sampled: run(sampled), trained: run(trained) };
  return {
    steps,
    tokens,
    ...(step === undefined ? {} : { seconds: secondsOf(step, { inEach, sampled, trained, groupsPerStep, steps }) }),
    ...(memory === undefined ? {} : { memory: memoryOf(memory, options) }),
    ...costOf(tokens, prices),
  };
}

/** Means a prompt: completion and training tokens of one completion, tokens of prompts that its group reads. */
function tokensPerStep({ rates, settings, isEpisodes }: ForecastOptions) {
  const sampled = rates.filter((rate) => rate.sampled > 0);
  return {
    completion: mean(sampled.map((rate) => rate.completionTokens / rate.sampled)),
    training: mean(sampled.map((rate) => rate.trainingTokens / rate.sampled)),
    prefill: mean(
      sampled.map((rate) =>
        isEpisodes ? (settings.groupSize * rate.prefillTokens) / rate.sampled : rate.prefillTokens,
      ),
    ),
  };
}

interface RunCases {
  readonly inEach: (of: (each: Case) => number) => Forecast;
  readonly sampled: (each: Case) => number;
  readonly trained: (each: Case) => number;
  readonly groupsPerStep: number;
  readonly steps: number;
}

/** Sampling goes by tokens and groups, passes by tokens; the update takes what it took. */
function secondsOf(step: MeasuredSteps, { inEach, sampled, trained, groupsPerStep, steps }: RunCases): Forecast {
  const share = groupsPerStep / step.groups;
  const forecast = inEach((each) => {
    const longer = sampled(each) / (share * step.sampledTokens);
    const sampling = share * ((step.collectMs - step.graderMs) * longer + step.graderMs);
    const passing = step.passMs * (trained(each) / step.trainingTokens);
    return (steps * (sampling + passing + step.updateMs)) / 1000;
  });
  const whole = step.collectMs + step.passMs + step.updateMs;
  const [low, high] = [Math.min(1, step.minMs / whole), Math.max(1, step.maxMs / whole)];
  return { expected: forecast.expected, low: forecast.low * low * pace.low, high: forecast.high * high * pace.high };
}

/** Bounds by the longest prompt, with answers as long as twice the mean and `maxTokens`; from below what measured steps held, else the bound at the mean. */
function memoryOf({ limit, bytes }: MemoryModel, options: ForecastOptions): NonNullable<RunForecast['memory']> {
  const { rates, settings, step } = options;
  const promptTokens = Math.max(1, ...rates.map((rate) => rate.promptTokens));
  const rows = settings.groupsPerStep * settings.groupSize;
  const length = Math.max(1, Math.ceil(tokensPerStep(options).completion || 1));
  const longest = settings.maxTokens * (options.isEpisodes ? settings.maxTurns : 1);
  const at = (newTokens: number): number => bytes({ rows, promptTokens, newTokens: Math.min(longest, newTokens) });
  const held = step?.heldBytes;
  const low = Math.min(at(length), held ?? Number.POSITIVE_INFINITY);
  return { expected: at(2 * length), low, high: at(longest), limit, ...(held === undefined ? {} : { held }) };
}

/** Without a price there is none. */
export function costOf(
  tokens: Omit<RunForecast['tokens'], 'trained'> & { readonly trained?: Forecast },
  prices: PriceModel | undefined,
): Pick<RunForecast, 'cost'> {
  if (prices === undefined) return {};
  const of = (which: keyof Forecast): number | undefined =>
    prices.cost({
      prefillTokens: tokens.prefill[which],
      sampleTokens: tokens.sampled[which],
      trainingTokens: tokens.trained?.[which] ?? 0,
    });
  const [expected, low, high] = [of('expected'), of('low'), of('high')];
  if (expected === undefined || low === undefined || high === undefined) return {};
  return { cost: { expected, low, high, currency: prices.currency } };
}

export function rounded({ expected, low, high }: Forecast): Forecast {
  return { expected: Math.round(expected), low: Math.round(low), high: Math.round(high) };
}
