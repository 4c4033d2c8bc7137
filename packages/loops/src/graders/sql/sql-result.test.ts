import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Problem } from '../../environments/environment.js';
import { createGrader } from '../grader.js';
import { openSqlDatabases, type SqlDatabases, type SqlValue } from './databases.js';
import { type SameRowsOptions, sameRows } from './same-rows.js';
import { type SqlResultOptions, sqlResult } from './sql-result.js';

const schema = 'CREATE TABLE sold (item TEXT, price REAL, count INTEGER);';
let databases: SqlDatabases;
beforeAll(async () => {
  databases = await openSqlDatabases(
    {
      shop: `${schema} INSERT INTO sold VALUES ('pen', 0.1, 3), ('ink', 0.2, 1), ('pen', 0.3, 2), ('ruler', NULL, 9007199254740993)`,
      other: `${schema} INSERT INTO sold VALUES ('pen', 1, 1)`,
    },
    { timeoutMs: 300, maxRows: 1000 },
  );
});
afterAll(() => databases.close());

const answer = (text: string, gold: string): Answer<Problem> => ({
  problem: { id: 'p', question: '?', answer: gold },
  text,
  stopReason: 'stop',
});
const grade = (text: string, gold: string, options: Partial<SqlResultOptions<Problem>> = {}) =>
  createGrader({ components: [sqlResult({ databases, database: 'shop', ...options })] })(answer(text, gold));
const all = 'SELECT item, price FROM sold';

describe('sqlResult', () => {
  it('compares rows, in any order unless one is asked for, and columns by place', async () => {
    const backwards = '```sql\nSELECT item AS what, price FROM sold ORDER BY count DESC;\n```';
    expect(await grade(backwards, all)).toMatchObject({ status: 'ok', reward: 1 });
    expect(await grade(backwards, all, { ordered: true })).toMatchObject({ status: 'ok', reward: 0 });
    expect(await grade(backwards, all, { columnNames: true })).toMatchObject({ reward: 0 });
    expect(await grade('SELECT price, item FROM sold', all)).toMatchObject({ reward: 0 });
    expect(await grade(`${all} LIMIT 3`, all)).toMatchObject({ reward: 0 });
    expect(
      await grade('Try ```sql``` or\n```sql\nSELECT 1\n```\nno:\n```\nSELECT item, price FROM sold -- all\n```', all),
    ).toMatchObject({ reward: 1 });
  });

  it('takes rows that are known, whole numbers in full', async () => {
    const expected = () => ({ rows: [[9007199254740993n]] });
    expect(await grade('SELECT max(count) FROM sold', '', { expected })).toMatchObject({ reward: 1 });
    expect(await grade('SELECT max(count) - 1 FROM sold', '', { expected })).toMatchObject({ reward: 0 });
  });

  it('asks for the right rows on every database that is named', async () => {
    const gold = 'SELECT sum(count) FROM sold';
    const database = ['other', 'shop'];
    expect(await grade('SELECT 1', gold, { database: 'other' })).toMatchObject({ reward: 1 });
    expect(await grade('SELECT 1', gold, { database })).toMatchObject({ reward: 0 });
    expect(await grade(gold, gold, { database })).toMatchObject({ reward: 1 });
  });

  it.each([
    ['a syntax error', 'SELEKT 1'],
    ['a table that is not there', 'SELECT * FROM none'],
    ['two statements', 'SELECT 1; SELECT 1'],
    ['a statement behind a comment', 'SELECT 1; /* x */ DELETE FROM sold'],
    ['only a comment', '-- nothing'],
    ['an insertion', "INSERT INTO sold VALUES ('x', 1, 1)"],
    ['a deletion', 'DELETE FROM sold'],
    ['a table dropped', 'DROP TABLE sold'],
    ['a temporary table', 'CREATE TEMP TABLE t AS SELECT 1'],
    ['another file', "ATTACH '/tmp/x' AS y"],
    ['a copy', "VACUUM INTO '/tmp/x'"],
    ['a pragma', 'PRAGMA hard_heap_limit = 0'],
    ['a pragma as a table', "SELECT * FROM pragma_table_info('sold')"],
    ['a transaction', 'BEGIN'],
    ['an extension', "SELECT load_extension('x')"],
    ['a query without end', 'WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r'],
    ['a result without end', 'WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT i FROM r'],
    ['more memory than there may be', 'SELECT hex(zeroblob(300000000))'],
    [
      'memory row by row',
      'WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r LIMIT 900) SELECT i, zeroblob(9000000) FROM r',
    ],
    ['NUL characters', 'SELECT 1\u0000'],
  ])('scores 0 for %s, and the database is as before', async (_, sql) => {
    const rows = 'SELECT count(*), max(count) FROM sold';
    const refused = await grade(sql, rows);
    expect(refused).toMatchObject({ status: 'ok', reward: 0 });
    const expected = () => ({ rows: [[4, 9007199254740993n]] });
    expect(await grade(rows, '', { expected })).toMatchObject({ status: 'ok', reward: 1 });
  });

  it('says in the trace what was wrong', async () => {
    const endless = 'WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r';
    expect((await grade(endless, all)).components?.[0]).toMatchObject({ trace: 'shop: stopped at its deadline' });
    expect((await grade('SELECT 1;SELECT 2', all)).components?.[0]).toMatchObject({
      trace: 'shop: more than one statement',
    });
  });

  it('is unparsed where there is no query, and an error of the grader where the reference is wrong', async () => {
    expect(await grade(' \n', all)).toMatchObject({ status: 'unparsed', reward: 0 });
    expect(await grade('```sql\nSELECT', all)).toMatchObject({ status: 'unparsed' });
    const failed = await grade(all, 'SELECT * FROM none');
    expect(failed).toMatchObject({ status: 'grader_error', error: { details: { field: 'expected' } } });
    expect(await grade(all, all, { database: 'constructor' })).toMatchObject({ status: 'grader_error' });
  });

  it('serves many at once, one of which never ends', async () => {
    const endless = 'WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r';
    const grades = await Promise.all([endless, ...Array.from({ length: 50 }, () => all)].map((sql) => grade(sql, all)));
    expect(grades.map((each) => 'reward' in each && each.reward)).toEqual([0, ...Array.from({ length: 50 }, () => 1)]);
  });

  it('ends what runs when its caller does, and goes on for others', async () => {
    const abort = new AbortController();
    const endless = 'WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r';
    const running = createGrader({ components: [sqlResult({ databases, database: 'shop' })] })(answer(endless, all), {
      signal: abort.signal,
    });
    const next = grade(all, all);
    abort.abort(new Error('enough'));
    expect(await running).toMatchObject({ status: 'grader_error', error: { message: 'enough' } });
    expect(await next).toMatchObject({ status: 'ok', reward: 1 });
  });
});

describe('openSqlDatabases', () => {
  it('refuses a script that fails, by name', async () => {
    const refused = (script: string) =>
      expect(openSqlDatabases({ good: schema, bad: script })).rejects.toMatchObject({
        code: 'invalid_argument',
        details: { field: 'scripts.bad' },
      });
    await refused('CREATE TABLE');
    await expect(openSqlDatabases({})).rejects.toMatchObject({ details: { field: 'scripts' } });
    await expect(openSqlDatabases({ a: schema }, { timeoutMs: 0 })).rejects.toMatchObject({
      details: { field: 'timeoutMs' },
    });
  });

  it('answers nothing after it was closed', async () => {
    const own = await openSqlDatabases({ a: schema });
    await own.close();
    await own.close();
    await expect(own.query('a', 'SELECT 1')).rejects.toMatchObject({ code: 'disposed' });
  });
});

describe('sameRows', () => {
  const table = (...rows: SqlValue[][]) => ({
    status: 'ok' as const,
    columns: (rows[0] ?? ['']).map((_, i) => `c${i}`),
    rows,
  });
  const same = (a: SqlValue[][], b: SqlValue[][], options?: SameRowsOptions) =>
    sameRows(table(...a), table(...b), options);

  it.each<[string, SqlValue[][], SqlValue[][], boolean]>([
    ['1 and 1.0', [[1]], [[1n]], true],
    ['1 and text', [[1]], [['1']], false],
    ['NULL and NULL', [[null]], [[null]], true],
    ['NULL and nothing', [[null]], [['']], false],
    ['NULL and 0', [[null]], [[0]], false],
    ['rows as often', [[1], [1], [2]], [[1], [2], [2]], false],
    ['sums in another order', [[0.1 + 0.2]], [[0.3]], true],
    ['large whole numbers', [[9007199254740993n]], [[9007199254740992n]], false],
    ['blobs', [[new Uint8Array([1, 2])]], [[new Uint8Array([1, 2])]], true],
    ['other blobs', [[new Uint8Array([1, 2])]], [[new Uint8Array([1, 3])]], false],
    [
      'swapped by less than the tolerance',
      [
        [1, 'a'],
        [1 + 1e-12, 'b'],
      ],
      [
        [1, 'b'],
        [1 + 1e-12, 'a'],
      ],
      true,
    ],
    [
      'two numbers that sort otherwise',
      [
        [1, 5],
        [1 + 1e-12, 4],
      ],
      [
        [1, 4],
        [1 + 1e-12, 5],
      ],
      true,
    ],
  ])('compares %s', (_, a, b, expected) => {
    expect(same(a, b)).toBe(expected);
    expect(same(b, a)).toBe(expected);
  });

  it('takes the tolerance that is given', () => {
    expect(same([[100.4]], [[100]], { tolerance: 0.005 })).toBe(true);
    expect(same([[100.6]], [[100]], { tolerance: 0.005 })).toBe(false);
    expect(same([[0.1 + 0.2]], [[0.3]], { tolerance: 0 })).toBe(false);
  });
});
