/** What the form of answers is worth, measured: told what it takes, drawn again, compared. */
import type { Problem } from '../environments/environment.js';
import { isAnswerEnvironment } from '../tasks/task.js';
import { wholeNumber } from '../training/options.js';
import { drawAgain, earlierForm } from './draw-again.js';
import type { PriceModel } from './forecast.js';
import { forecastFormatGap } from './format-forecast.js';
import { formatGapOf } from './format-gap.js';
import type { RateOptions } from './sample-rates.js';
import type { FormatGapForecast, FormRate, MeasuredFormatGap, MeasuredSteps, PromptRate } from './words.js';

export interface FormatGapOptions {
  /** Draws of an answer at most, its first one included; default 16. */
  readonly mostDraws?: number;
  /** Called and awaited before anything is drawn again. */
  readonly onForecast?: (forecast: FormatGapForecast) => void | Promise<void>;
  /** Called and awaited for each prompt, to keep it for a later attempt. */
  readonly onForm?: (form: FormRate) => void | Promise<void>;
}

/** @returns draws of an answer at most @throws `invalid_argument` for fewer than two */
export function mostDrawsOf({ mostDraws = 16 }: FormatGapOptions): number {
  wholeNumber('formatGap.mostDraws', mostDraws, 2);
  return mostDraws;
}

export interface MeasureFormOptions<P extends Problem> extends Omit<RateOptions<P>, 'samples'> {
  readonly formatGap: FormatGapOptions;
  /** What an earlier attempt drew, by id. */
  readonly earlier: ReadonlyMap<string, FormRate>;
  readonly problems: readonly P[];
  readonly step: MeasuredSteps | undefined;
  readonly prices: PriceModel | undefined;
}

/** @param rates of the problems, in their order */
export async function measureForm<P extends Problem>(
  rates: readonly PromptRate[],
  { formatGap, earlier, step, prices, ...options }: MeasureFormOptions<P>,
): Promise<MeasuredFormatGap> {
  const mostDraws = mostDrawsOf(formatGap);
  const { onForecast, onForm } = formatGap;
  const left = rates.filter(({ id }) => earlierForm(earlier, id, mostDraws) === undefined);
  const isEpisodes = !isAnswerEnvironment(options.environment);
  await onForecast?.(forecastFormatGap({ rates: left, mostDraws, isEpisodes, step, prices }));
  return formatGapOf(rates, await drawAgain({ ...options, rates, mostDraws, earlier, onForm }));
}

/** What an earlier attempt came to; undefined unless it drew all of these prompts again, under one bound. */
export function earlierGap(
  rates: readonly PromptRate[],
  earlier: ReadonlyMap<string, FormRate>,
): MeasuredFormatGap | undefined {
  const forms = rates.flatMap(({ id }) => earlier.get(id) ?? []);
  const bounds = new Set(forms.map(({ mostDraws }) => mostDraws));
  return forms.length === rates.length && bounds.size === 1 ? formatGapOf(rates, forms) : undefined;
}
