import { expect, test } from 'vitest';
import { openDatabase } from './open-database.js';
import { prepared, preparedInsert } from './prepared.js';

const payload = (number: number) => ({ workspace_id: 'w', hash: String(number), bytes: new Uint8Array([number]) });

test('a prepared query runs with the values of each call, also inside a transaction that is undone', async () => {
  await using database = Object.assign(openDatabase(':memory:'), {
    [Symbol.asyncDispose]: () => database.destroy(),
  });
  const add = preparedInsert('small_payloads');
  const above = prepared<{ readonly least: string }>()((db, { least }) =>
    db.selectFrom('small_payloads').select('hash').where('hash', '>', least).orderBy('hash'),
  );
  for (const number of [1, 2, 3]) await add(database, payload(number));
  const numbersAbove = async (least: string) => (await above(database, { least })).rows.map((row) => row.hash);
  expect(await numbersAbove('1')).toEqual(['2', '3']);
  expect(await numbersAbove('2')).toEqual(['3']);

  const undone = database.transaction().execute(async (trx) => {
    await add(trx, payload(4));
    expect((await above(trx, { least: '3' })).rows).toHaveLength(1);
    throw new Error('undo');
  });
  await expect(undone).rejects.toThrow('undo');
  expect(await numbersAbove('3')).toEqual([]);
});

test('a row of other columns than the first is refused, and so never stored in part', async () => {
  await using database = Object.assign(openDatabase(':memory:'), {
    [Symbol.asyncDispose]: () => database.destroy(),
  });
  const add = preparedInsert('small_payloads');
  await add(database, payload(1));
  const { workspace_id, ...less } = payload(2);
  await expect(add(database, less as ReturnType<typeof payload>)).rejects.toThrow('a row of other columns');
  expect(workspace_id).toBe('w');
});
