import { asLoopwrightError } from '@loopwright/protocol';
import { rejection } from '@loopwright/testkit';
import { expect, it } from 'vitest';
import { type Int8Product, requireExactInt8 } from './int8-kernels.js';

/** As processors without VNNI do it: unsigned times signed bytes, added up two by two in 16 bits. */
async function inSixteenBits({ rows, weight }: Int8Product): Promise<number[]> {
  const clamp = (sum: number) => Math.max(-32_768, Math.min(32_767, sum));
  return rows.flatMap((row) =>
    weight[0]!.map((_, m) => {
      let sum = 0;
      for (let k = 0; k < row.length; k += 2)
        sum += clamp((row[k]! + 128) * weight[k]![m]! + (row[k + 1]! + 128) * weight[k + 1]![m]!);
      return sum - 128 * weight.reduce((total, column) => total + column[m]!, 0);
    }),
  );
}

async function exactly({ rows, weight }: Int8Product): Promise<number[]> {
  return rows.flatMap((row) =>
    weight[0]!.map((_, m) => row.reduce((sum, value, k) => sum + value * weight[k]![m]!, 0)),
  );
}

it('takes kernels that add up exactly', async () => {
  await requireExactInt8(exactly);
});

it('refuses kernels whose sums are cut off, with what there is instead', async () => {
  expect(asLoopwrightError(await rejection(requireExactInt8(inSixteenBits)))).toMatchObject({
    code: 'unsupported_host',
    details: {
      field: 'samplerPrecision',
      expected: expect.stringContaining('VNNI'),
      got: expect.stringContaining('cut off'),
      remedy: expect.stringContaining('float32'),
    },
  });
});

it('refuses a single sum that is off by one', async () => {
  const almost = async (product: Int8Product) =>
    (await exactly(product)).map((sum, i) => (i === 77 && product.rows.length > 2 ? sum + 1 : sum));
  expect(await rejection(requireExactInt8(almost))).toMatchObject({ code: 'unsupported_host' });
});
