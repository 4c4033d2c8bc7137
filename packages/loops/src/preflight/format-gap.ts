/** What the form of answers is worth: pass rates as answers come, beside those given that the grader can read them, prompt by prompt. */
import { comparePairs } from '../statistics/paired.js';
import type { FormComparison, FormRate, MeasuredFormatGap, PromptRate } from './words.js';

/** Points of pass rate below which form is not worth a measure of its own: about what 400 held-out problems can tell at best. */
export const worthOfForm = 0.05;

/** Fewer pairs without any spread say nothing of how pairs differ, as in `comparePairs`. */
const leastPairs = 6;

/** @param rates of the first draws, and @param forms of the same prompts, in the same order */
export function formatGapOf(rates: readonly PromptRate[], forms: readonly FormRate[]): MeasuredFormatGap {
  const pairs = rates.flatMap((rate, i) => {
    const form = forms[i]!; // one for each
    if (rate.n === 0 || form.readable + form.neverRead === 0) return []; // the grader failed on all
    return [{ asItComes: rate.passRate, readable: form.readable === 0 ? undefined : form.correct / form.readable }];
  });
  const read = pairs.filter(({ readable }) => readable !== undefined);
  const compared = compare(read, 0);
  const atLeast = compare(pairs, 0);
  const atMost = compare(pairs, 1);
  const sum = (of: (form: FormRate) => number): number => forms.reduce((total, form) => total + of(form), 0);
  return {
    mostDraws: Math.max(0, ...forms.map(({ mostDraws }) => mostDraws)),
    prompts: { measured: pairs.length, neverRead: pairs.length - read.length },
    answers: {
      unreadable: rates.reduce((total, { unparsed }) => total + unparsed, 0),
      neverRead: sum(({ neverRead }) => neverRead),
    },
    ...(compared === undefined ? {} : { compared }),
    ...(atLeast === undefined || atMost === undefined ? {} : { atLeast, atMost }),
    draws: {
      count: sum(({ drawnAgain }) => drawnAgain),
      sampledTokens: sum(({ sampledTokens }) => sampledTokens),
      prefillTokens: sum(({ prefillTokens }) => prefillTokens),
    },
    verdict: verdictOf(atLeast, atMost),
  };
}

interface Pair {
  readonly asItComes: number;
  /** Undefined where no answer could be read. */
  readonly readable: number | undefined;
}

/** @param unread what a prompt without a readable answer counts as */
function compare(pairs: readonly Pair[], unread: number): FormComparison | undefined {
  if (pairs.length < 2) return undefined;
  const { n, start, candidate, difference, interval } = comparePairs(
    pairs.map(({ asItComes }) => asItComes),
    pairs.map(({ readable }) => readable ?? unread),
  );
  return { n, asItComes: start, readable: candidate, difference, interval };
}

/** Whatever the prompts are like whose answers could never be read. */
function verdictOf(
  atLeast: FormComparison | undefined,
  atMost: FormComparison | undefined,
): MeasuredFormatGap['verdict'] {
  if (atLeast === undefined || atMost === undefined || atLeast.n < leastPairs) return 'not-distinguishable';
  if (atLeast.interval.low >= worthOfForm) return 'form';
  return atMost.interval.high < worthOfForm ? 'not-form' : 'not-distinguishable';
}

/** Of what is missing to 100 %, what a readable form would bring; from 0 to 1. */
export function shareOfForm({ asItComes, difference }: FormComparison): number {
  return asItComes >= 1 ? 0 : Math.min(1, Math.max(0, difference / (1 - asItComes)));
}
