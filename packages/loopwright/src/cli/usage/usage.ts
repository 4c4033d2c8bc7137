/** `loopwright usage`: what a server's sessions used, and what that comes to by a table of prices. */
import type { UsageLine } from '@loopwright/client';
import { costOf, readPrices } from '@loopwright/loops/node';
import type { UsageGrouping } from '@loopwright/protocol';
import type { CommandContext } from '../context.js';
import { type ServerAddress, serviceOf } from '../sessions.js';
import { formatTable, timeText } from '../text.js';

export interface UsageOptions extends ServerAddress {
  readonly by: UsageGrouping;
  readonly from?: number;
  readonly to?: number;
  readonly prices?: string;
}

const nothing = { operations: 0, prefillTokens: 0, sampleTokens: 0, trainingTokens: 0, cost: 0 };

export async function usageCommand(
  { by, from, to, prices: pricesPath, ...address }: UsageOptions,
  context: CommandContext,
): Promise<void> {
  const { console } = context;
  const prices = pricesPath === undefined ? undefined : await readPrices(pricesPath);
  const service = serviceOf(address, context);
  const span = { ...(from === undefined ? {} : { fromMs: from }), ...(to === undefined ? {} : { toMs: to }) };
  const lines = (await service.usage({ by, ...span })).map((line) => {
    const cost = prices && costOf(line, line.baseModel, prices);
    return { ...line, ...(cost === undefined ? {} : { cost }) };
  });
  const { cost, ...sums } = lines.reduce(
    (sum, line) => ({
      operations: sum.operations + line.operations,
      prefillTokens: sum.prefillTokens + line.prefillTokens,
      sampleTokens: sum.sampleTokens + line.sampleTokens,
      trainingTokens: sum.trainingTokens + line.trainingTokens,
      cost: sum.cost + (line.cost ?? 0),
    }),
    nothing,
  );
  const currency = prices?.currency;
  const unpriced = [...new Set(lines.filter((line) => line.cost === undefined).map(({ baseModel }) => baseModel))];
  for (const line of lines) console.event({ type: 'usage', ...line, ...(currency === undefined ? {} : { currency }) });
  console.event({ type: 'total', ...sums, ...(currency === undefined ? {} : { cost, currency, unpriced }) });
  if (lines.length === 0) {
    console.line(`Nothing was used at ${service.baseUrl} in that time.`);
    return;
  }
  const money = (value: number | undefined) => (currency === undefined ? [] : [value?.toFixed(6) ?? '?']);
  const counts = (line: Omit<typeof nothing, 'cost'>) =>
    [line.operations, line.prefillTokens, line.sampleTokens, line.trainingTokens].map(String);
  const head = [
    by,
    'operations',
    'prefill',
    'sample',
    'training',
    ...(currency === undefined ? [] : [currency]),
    'last',
  ];
  const rows = lines.map((line) => [nameOf(line), ...counts(line), ...money(line.cost), timeText(line.lastAtMs)]);
  for (const text of formatTable(head, [...rows, ['total', ...counts(sums), ...money(cost)]])) console.line(text);
  if (currency !== undefined && unpriced.length > 0)
    console.note(`The total leaves out ${unpriced.join(', ')}: the table has no price of it, nor of *.`);
}

function nameOf({ session, operationType, baseModel }: UsageLine): string {
  if (operationType !== undefined) return `${operationType}, ${baseModel}`;
  return session?.name ?? baseModel;
}
