/** What the form of answers is worth, for people: what measuring it takes, and what it came to. */
import {
  counted,
  type FormatGapForecast,
  type FormComparison,
  type MeasuredFormatGap,
  shareOfForm,
  worthOfForm,
} from '@loopwright/loops';
import { durationText } from '../runs/text.js';
import { countText, percentText } from '../text.js';
import { rangeText } from './range-text.js';

/** In one sentence, before it is done. */
export function formatForecastText({ answers, mostDraws, draws, tokens, seconds, cost }: FormatGapForecast): string {
  const more = [
    `${rangeText(draws, countText)} draws`,
    `${rangeText(tokens.sampled, countText)} tokens`,
    ...(seconds === undefined ? [] : [rangeText(seconds, (value) => durationText(1000 * value))]),
    ...(cost === undefined ? [] : [rangeText(cost, (money) => `${money.toFixed(4)} ${cost.currency}`)]),
  ];
  return `Drawing ${counted(answers, 'unreadable answer')} again, each ${mostDraws - 1} times at most: about ${more.join(', ')}.`;
}

/** Rows of a table. */
export function formatGapRows(gap: MeasuredFormatGap): (readonly [string, string])[] {
  const { compared, atLeast, prompts, answers, draws, mostDraws } = gap;
  const never =
    prompts.neverRead === 0
      ? []
      : [
          [
            'never read',
            `${prompts.neverRead} of ${counted(prompts.measured, 'prompt')}, in ${mostDraws} draws of each answer${atLeast === undefined ? '' : `; taken as wrong: ${comparisonText(atLeast)}`}`,
          ] as const,
        ];
  return [
    ['format gap', compared === undefined ? 'not measured: too few prompts were ever read' : comparisonText(compared)],
    ...never,
    [
      'drawn again',
      `${counted(answers.unreadable, 'answer')}, ${answers.neverRead} of them never read; ${countText(draws.count)} draws, ${countText(draws.sampledTokens)} tokens, and ${countText(draws.prefillTokens)} of prompts`,
    ],
    ['verdict', verdictText(gap)],
  ];
}

function comparisonText({ n, asItComes, readable, difference, interval }: FormComparison): string {
  const { low, high } = interval;
  return `${percentText(asItComes)} as it comes, ${percentText(readable)} in a readable form: ${points(difference)} points (n = ${counted(n, 'prompt')}, 95 % interval ${points(low)} to ${points(high)})`;
}

function verdictText({ verdict, compared }: MeasuredFormatGap): string {
  const margin = `${100 * worthOfForm} points`;
  switch (verdict) {
    case 'form': {
      const share = compared === undefined ? 0 : shareOfForm(compared);
      return `${share >= 0.5 ? 'mostly form' : 'in part form'}: ${percentText(share)} of what is missing. Ask for the form first (an example, constrained output, a short SFT), RL second`;
    }
    case 'not-form':
      return `not form: a readable one is worth less than ${margin}`;
    case 'not-distinguishable':
      return `not distinguishable yet whether form is worth ${margin}`;
    default:
      return verdict satisfies never;
  }
}

function points(share: number): string {
  return `${share < 0 ? '−' : '+'}${Math.abs(100 * share).toFixed(1)}`;
}
