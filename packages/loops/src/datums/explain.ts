/** A datum as a table for people. */
import type { DatumFor, LossName, NumberArray } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import { displayWidth, escapeText, truncateText } from '../escape-text.js';
import { checkTrainerLogprobs } from './agreement.js';

/** Columns of token text at most; longer tokens are cut. */
const tokenColumns = 24;

/** Any datum, for losses that need more or less. */
type AnyDatum = { readonly [L in LossName]: DatumFor<L> }[LossName];

export interface ExplainOptions {
  /** N: what a pass gave for this datum; shown beside the sampled logprobs, with the difference of the two. */
  readonly trainerLogprobs?: ArrayLike<number>;
}

/**
 * One line per position: the input token, the target that it predicts, and the datum's numbers there. Token text is
 * escaped, so that nothing in it can reach the terminal as a command.
 *
 * @throws `invalid_argument` for trainerLogprobs of another length
 * @returns lines joined by \n, with a head; columns that the datum lacks are left out
 * @example console.log(explain(sftDatum({ prompt, completion }), tokenizer))
 */
export function explain(
  datum: AnyDatum,
  tokenizer: Pick<Tokenizer, 'decode'>,
  { trainerLogprobs = [] }: ExplainOptions = {},
): string {
  if (trainerLogprobs.length > 0) checkTrainerLogprobs(trainerLogprobs, datum.modelInput.length);
  const show = (id: number): string => {
    const text = escapeText(tokenizer.decode([id], { skipSpecialTokens: false }));
    return `${truncateText(`"${text}"`, tokenColumns)} ${id}`;
  };
  const inputs: Readonly<Partial<Record<string, NumberArray>>> = datum.lossFnInputs;
  const columns: [string, string[]][] = [
    ['position', Array.from(datum.modelInput, (_, i) => String(i))],
    ['input', Array.from(datum.modelInput, show)],
    ['target', cells(inputs.targetTokens, show)],
    ['weight', cells(inputs.weights, formatNumber)],
    ['advantage', cells(inputs.advantages, formatNumber)],
    ['logprob', cells(inputs.logprobs, formatNumber)],
    ['trainer', cells(Array.from(trainerLogprobs), formatNumber)],
    ['difference', differences(trainerLogprobs, inputs)],
    ['reference', cells(inputs.refLogProb, formatNumber)],
  ];
  return table(columns.filter(([, values]) => values.length > 0));
}

/** (N) as it is; (N,K) with K values in a cell. */
function cells(values: NumberArray | undefined, show: (value: number) => string): string[] {
  if (values === undefined) return [];
  return Array.from<number | readonly number[], string>(values, (value) =>
    typeof value === 'number' ? show(value) : value.map(show).join(' | '),
  );
}

/** Trainer less sampler, where the datum was sampled and has weight. */
function differences(
  trainerLogprobs: ArrayLike<number>,
  { logprobs, weights }: Readonly<Partial<Record<string, NumberArray>>>,
): string[] {
  if (logprobs === undefined) return [];
  return Array.from(trainerLogprobs, (trainer, i) =>
    Number(weights?.[i]) === 0 ? '' : (trainer - Number(logprobs[i])).toExponential(1),
  );
}

function formatNumber(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(4);
}

const rightAligned = new Set(['position', 'weight', 'advantage', 'logprob', 'trainer', 'difference', 'reference']);

function table(columns: readonly [string, string[]][]): string {
  const rows = Math.max(...columns.map(([, values]) => values.length));
  const widths = columns.map(([name, values]) => Math.max(...[name, ...values].map(displayWidth)));
  const line = (pick: (column: [string, string[]]) => string): string =>
    columns
      .map((column, i) => {
        const text = pick(column);
        const fill = ' '.repeat(Math.max(0, (widths[i] ?? 0) - displayWidth(text)));
        return rightAligned.has(column[0]) ? fill + text : text + fill;
      })
      .join('  ')
      .trimEnd();
  return [
    line(([name]) => name),
    ...Array.from({ length: rows }, (_, row) => line(([, values]) => values[row] ?? '')),
  ].join('\n');
}
