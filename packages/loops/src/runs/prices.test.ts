import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { expect, it } from 'vitest';
import { costOf, readPrices } from './prices.js';

const usage = { prefillTokens: 2_000_000, sampleTokens: 1_000_000, trainingTokens: 500_000 };
const cheap = { prefill: 1, sample: 2, training: 4 };
const dear = { prefill: 10, sample: 20, training: 40 };

it.each([
  ['org/name', { 'org/name': cheap, '*': dear }, 6],
  ['org/name@abc', { 'org/name': cheap, '*': dear }, 6],
  ['org/name@abc', { 'org/name@abc': dear, 'org/name': cheap }, 60],
  ['other', { 'org/name': cheap, '*': dear }, 60],
  ['other', { 'org/name': cheap }, undefined],
  ['toString', {}, undefined],
])('%s costs what the table says of it', (model, models, cost) => {
  expect(costOf(usage, model, { currency: 'USD', models })).toBe(cost);
});

it('refuses a table with something missing, below zero or unknown, by its place', async () => {
  await using folder = await temporaryDirectory();
  const path = join(folder.path, 'prices.json');
  const refusal = async (text: string): Promise<unknown> => {
    await writeFile(path, text);
    return readPrices(path).catch((error: unknown) => error);
  };
  const table = (models: object) => JSON.stringify({ currency: 'EUR', models });
  expect(await refusal('{')).toMatchObject({ code: 'invalid_argument', details: { field: 'prices' } });
  expect(await refusal('{"models": {}}')).toMatchObject({ details: { field: 'prices.currency' } });
  expect(await refusal(table({ a: { prefill: 1, sample: 2 } }))).toMatchObject({
    details: { field: 'prices.models.a.training' },
  });
  expect(await refusal(table({ a: { ...cheap, sample: -1 } }))).toMatchObject({
    details: { field: 'prices.models.a.sample' },
  });
  expect(await refusal(table({ a: { ...cheap, train: 1 } }))).toMatchObject({ details: { field: 'prices.models.a' } });
  expect(await readPrices(join(folder.path, 'none')).catch((error: unknown) => error)).toMatchObject({
    details: { got: `no file at ${join(folder.path, 'none')}` },
  });
  await writeFile(path, table({ a: cheap }));
  expect(await readPrices(path)).toEqual({ currency: 'EUR', models: { a: cheap } });
});
