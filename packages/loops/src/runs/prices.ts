/** A table of prices, and what usage comes to by it. */
import { readFile } from 'node:fs/promises';
import { complaint, splitPinned, type TokenUsage } from '@loopwright/protocol';
import * as z from 'zod';
import { systemCode } from './write-error.js';

const price = z.number().min(0);
const priceTable = z.strictObject({
  currency: z.string().min(1).max(16),
  models: z.record(z.string(), z.strictObject({ prefill: price, sample: price, training: price })),
});

/** Prices of a million tokens, by base model; `*` stands for all others. */
export type PriceTable = z.infer<typeof priceTable>;

const example =
  '{"currency": "USD", "models": {"NAME or *": {"prefill": 0, "sample": 0, "training": 0}}}, with prices of a million tokens';

/** @throws `invalid_argument` for a file that can't be read or is no table, naming the entry */
export async function readPrices(path: string): Promise<PriceTable> {
  let json: unknown;
  try {
    json = JSON.parse(await readFile(path, 'utf8'));
  } catch (cause) {
    const unreadable = systemCode(cause) === 'ENOENT' ? `no file at ${path}` : `a file that cannot be read: ${path}`;
    throw refuse('prices', cause instanceof SyntaxError ? 'a file that is no JSON' : unreadable, cause);
  }
  return checkPrices(json);
}

/** @throws `invalid_argument` for what is no table, naming the entry */
export function checkPrices(value: unknown): PriceTable {
  const { data, error } = priceTable.safeParse(value);
  if (data !== undefined) return data;
  const [issue] = error.issues;
  throw refuse(['prices', ...(issue?.path ?? [])].join('.'), issue?.message ?? 'another value', error);
}

function refuse(field: string, got: string, cause: unknown): Error {
  return complaint({ field, expected: example, got, remedy: 'mend the table of prices', cause });
}

/** Undefined where the table has no price of the model. A pinned model has the price of its name, unless it has one of its own. */
export function costOf(
  { prefillTokens, sampleTokens, trainingTokens }: TokenUsage,
  baseModel: string,
  { models }: PriceTable,
): number | undefined {
  const prices = [baseModel, splitPinned(baseModel).repository, '*'].find((name) => Object.hasOwn(models, name));
  if (prices === undefined) return undefined;
  const { prefill, sample, training } = models[prices]!;
  return (prefillTokens * prefill + sampleTokens * sample + trainingTokens * training) / 1e6;
}
