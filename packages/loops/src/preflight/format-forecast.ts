/** What drawing again until answers can be read will take, told before it is done. */
import { costOf, type PriceModel, rounded } from './forecast.js';
import type { Forecast, FormatGapForecast, MeasuredSteps, PromptRate } from './words.js';

export interface FormatForecastOptions {
  /** Of the prompts that are still to be drawn again. */
  readonly rates: readonly PromptRate[];
  readonly mostDraws: number;
  /** Each answer of an episode has a prompt of its own. */
  readonly isEpisodes: boolean;
  readonly step: MeasuredSteps | undefined;
  readonly prices: PriceModel | undefined;
}

/** Steps that were measured had other answers, and the machine may have other work. */
const pace = { low: 0.5, high: 2 } as const;

/** Answers that the share of all prompts counts as, beside a prompt's own. */
const weight = 2;

/** Draws after the first: those of one answer, and rounds until all of a prompt's are done. */
interface Case {
  readonly drawsOf: (rate: PromptRate) => number;
  readonly roundsOf: (rate: PromptRate) => number;
}

/**
 * Each unreadable answer is drawn once more at least, and as often as the bound says at most. What is expected goes by the prompt's own chance p of
 * an unreadable answer, with the posterior Beta(unreadable + 2s, readable + 2 − 2s) where s is the share of all prompts: Σ E[p^j], j from 0 up to the
 * bound. Lengths are the prompt's mean.
 */
export function forecastFormatGap(options: FormatForecastOptions): FormatGapForecast {
  const { mostDraws, step, prices, isEpisodes } = options;
  const rates = options.rates.filter(({ unparsed }) => unparsed > 0);
  const most = mostDraws - 1;
  const graded = options.rates.reduce((sum, { n }) => sum + n, 0);
  const answers = rates.reduce((sum, { unparsed }) => sum + unparsed, 0);
  const posterior = ({ n, unparsed }: PromptRate): Posterior => ({
    unread: unparsed + weight * (answers / graded),
    all: n + weight,
  });
  const cases = {
    expected: {
      drawsOf: (rate) => expectedDraws(posterior(rate), most),
      roundsOf: (rate) => expectedRounds(posterior(rate), { most, answers: rate.unparsed }),
    },
    low: { drawsOf: () => Math.min(1, most), roundsOf: () => Math.min(1, most) },
    high: { drawsOf: () => most, roundsOf: () => most },
  } satisfies Readonly<Record<keyof Forecast, Case>>;
  const total = (of: (rate: PromptRate, each: Case) => number): Forecast => {
    const sum = (each: Case): number => rates.reduce((so, rate) => so + of(rate, each), 0);
    return rounded({ expected: sum(cases.expected), low: sum(cases.low), high: sum(cases.high) });
  };
  const again = (rate: PromptRate, { drawsOf }: Case): number => rate.unparsed * drawsOf(rate);
  const sampled = total((rate, each) => (again(rate, each) * rate.completionTokens) / rate.sampled);
  // A round reads the prompt of answers once for all of them.
  const prefill = total((rate, each) =>
    isEpisodes ? (again(rate, each) * rate.prefillTokens) / rate.sampled : rate.prefillTokens * each.roundsOf(rate),
  );
  return {
    ...{ mostDraws, answers, draws: total(again), tokens: { prefill, sampled } },
    ...(step === undefined ? {} : { seconds: secondsOf(sampled, step) }),
    ...costOf({ prefill, sampled }, prices),
  };
}

/** Of a prompt's chance of an unreadable answer: Beta(unread, all − unread). */
interface Posterior {
  readonly unread: number;
  readonly all: number;
}

function expectedDraws({ unread, all }: Posterior, most: number): number {
  let [sum, power] = [0, 1];
  for (let j = 0; j < most; j++) {
    sum += power;
    power *= (unread + j) / (all + j);
  }
  return sum;
}

/** Until the last answer is read, at the posterior's mean. */
function expectedRounds({ unread, all }: Posterior, { most, answers }: { most: number; answers: number }): number {
  const p = unread / all;
  let sum = 0;
  for (let j = 0; j < most; j++) sum += 1 - (1 - p ** j) ** answers;
  return sum;
}

/** At the pace in which the steps' answers were sampled and judged. */
function secondsOf(sampled: Forecast, { collectMs, sampledTokens }: MeasuredSteps): Forecast {
  const perToken = collectMs / Math.max(1, sampledTokens) / 1000;
  return {
    expected: sampled.expected * perToken,
    low: sampled.low * perToken * pace.low,
    high: sampled.high * perToken * pace.high,
  };
}
