import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CurriculumOptions } from './curriculum.js';
import { type Dataset, datasetOf } from './dataset.js';
import { openDataset } from './files/open-dataset.js';
import { readPassRates } from './files/pass-rates.js';
import { jsonlSource, textSource } from './jsonl-source.js';
import { findLeaks } from './leaks.js';
import type { DataRow } from './row.js';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'orders-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** A new file each time. */
let files = 0;
async function put(content: string | Uint8Array, ending = 'jsonl'): Promise<string> {
  files += 1;
  const path = join(folder, `${files}.${ending}`);
  await writeFile(path, content);
  return path;
}

const lines = (rows: readonly unknown[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
const counted = (count: number) => lines(Array.from({ length: count }, (_, n) => ({ n, text: 'é'.repeat(n % 7) })));

async function numbers(rows: AsyncIterable<DataRow>): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const { row } of rows) found.push(row.n);
  return found;
}

const ascending = (count: number) => Array.from({ length: count }, (_, n) => n);
const sorted = (found: readonly unknown[]) => [...found].sort((a, b) => Number(a) - Number(b));

test('a shuffle gives each row once, the same for the same seed and epoch, another for others', async () => {
  const data = await openDataset([
    await put(`\ufeff${counted(150).replaceAll('\n', '\r\n\r\n')}`),
    await put('{"n":150}'),
  ]);
  const order = async (seed: number, epoch: number) => numbers(await data.shuffled({ seed, epoch }));
  const first = await order(1, 0);
  expect(sorted(first)).toEqual(ascending(151));
  expect(first).not.toEqual(ascending(151));
  expect(await order(1, 0)).toEqual(first);
  expect(await order(1, 1)).not.toEqual(first);
  expect(await order(2, 0)).not.toEqual(first);
});

test('wherever a shuffle is broken off, it goes on from the saved position with just the rows that are left', async () => {
  const data = await openDataset(await put(counted(100)));
  const whole = await numbers(await data.shuffled({ seed: 3 }));
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 100 }), async (stop) => {
      const rows = await data.shuffled({ seed: 3 });
      const before: unknown[] = [];
      for await (const { row } of rows) {
        before.push(row.n);
        if (before.length === stop) break;
      }
      const resume = JSON.parse(JSON.stringify(rows.position())) as ReturnType<typeof rows.position>; // true: its own JSON
      expect([...before, ...(await numbers(await data.shuffled({ seed: 3, resume })))]).toEqual(whole);
    }),
    { numRuns: 25 },
  );
});

test('a position of other data, another seed, or beyond the end is refused', async () => {
  const data = await openDataset(await put(counted(10)));
  const resume = (await data.shuffled({ seed: 3 })).position();
  const other = await openDataset(await put(counted(10).replace('"n":4', '"n":44')));
  await expect(other.shuffled({ seed: 3, resume })).rejects.toMatchObject({
    code: 'data_invalid',
    details: { field: 'resume.digest' },
  });
  await expect(data.shuffled({ seed: 4, resume })).rejects.toMatchObject({ details: { field: 'resume.seed' } });
  await expect(data.shuffled({ seed: 3, resume: { ...resume, next: 11 } })).rejects.toThrow(/0 to 10/);
  await expect(data.shuffled({ seed: 0.5 })).rejects.toMatchObject({ code: 'invalid_argument' });
});

test('a file that changes after it was indexed is noticed', async () => {
  const path = await put(counted(10));
  const rows = await (await openDataset(path)).shuffled({ seed: 1 });
  await writeFile(path, counted(10).replace('"n":4', '"n":5'));
  await expect(numbers(rows)).rejects.toMatchObject({ code: 'data_invalid' });
  await writeFile(path, '');
  await expect(numbers(rows)).rejects.toMatchObject({ code: 'data_invalid' });
});

/** The same rows in a file of each kind; the Parquet one has seven groups. */
async function kindsOf(count: number): Promise<Readonly<Record<'plain' | 'gzip' | 'parquet', Dataset>>> {
  const columnData = [
    { name: 'n', data: ascending(count), type: 'INT32' as const },
    { name: 'text', data: ascending(count).map((n) => 'é'.repeat(n % 7)), type: 'STRING' as const },
  ];
  const parquet = parquetWriteBuffer({ columnData, rowGroupSize: Math.ceil(count / 7) });
  return {
    plain: await openDataset(await put(counted(count))),
    gzip: await openDataset(await put(gzipSync(counted(count)), 'jsonl.gz')),
    parquet: await openDataset(await put(new Uint8Array(parquet), 'parquet')),
  };
}

test('compressed and Parquet files are shuffled as plain ones are, however few rows are held, and go on as they do', async () => {
  const { plain, ...packed } = await kindsOf(100);
  const expected = await numbers(await plain.shuffled({ seed: 3, epoch: 1 }));
  for (const data of Object.values(packed)) {
    for (const maxHeldBytes of [undefined, 2000, 1]) {
      const options = { seed: 3, epoch: 1, ...(maxHeldBytes === undefined ? {} : { maxHeldBytes }) };
      expect(await numbers(await data.shuffled(options))).toEqual(expected);
      const rows = await data.shuffled(options);
      const iterator = rows[Symbol.asyncIterator]();
      for (let i = 0; i < 41; i++) await iterator.next();
      await iterator.return?.();
      const rest = await data.shuffled({ ...options, resume: rows.position() });
      expect(await numbers(rest)).toEqual(expected.slice(41));
    }
  }
});

test('files of all kinds together are shuffled as one', async () => {
  const { plain, gzip, parquet } = await kindsOf(20);
  const files = [...plain.files, ...gzip.files, ...parquet.files];
  const data = await openDataset(files);
  const order = await numbers(await data.shuffled({ seed: 1, maxHeldBytes: 2000 }));
  expect(sorted(order)).toEqual(ascending(20).flatMap((n) => [n, n, n]));
  expect(order.slice(0, 20)).not.toEqual(ascending(20));
});

test('a file without access by row is read once for each number of bytes that are held', async () => {
  let readings = 0;
  const bytes = new TextEncoder().encode(counted(100));
  const open = async function* () {
    readings += 1;
    yield bytes;
  };
  const data = datasetOf([jsonlSource(open, { file: 'rows' })]);
  const rows = await data.shuffled({ seed: 1 });
  await numbers(rows);
  expect(readings).toBe(2); // to index it, and to pick rows out
  readings = 0;
  // A row takes some 280 bytes.
  await numbers(await data.shuffled({ seed: 1, maxHeldBytes: 8000 }));
  expect(readings).toBe(1 + 4);
});

test('a compressed file that changes after it was indexed is noticed, and a reading of rows is ended by its signal', async () => {
  const path = await put(gzipSync(counted(10)), 'jsonl.gz');
  const abort = new AbortController();
  const data = await openDataset(path);
  const rows = await data.shuffled({ seed: 1, signal: abort.signal });
  await writeFile(path, gzipSync(counted(10).replace('"n":4', '"n":5')));
  await expect(numbers(rows)).rejects.toMatchObject({ code: 'data_invalid' });
  await writeFile(path, gzipSync(counted(5)));
  await expect(numbers(rows)).rejects.toMatchObject({ code: 'data_invalid' });
  abort.abort();
  await expect(numbers(rows)).rejects.toMatchObject({ code: 'cancelled' });
  await expect(data.shuffled({ seed: 1, maxHeldBytes: 0 })).rejects.toMatchObject({ code: 'invalid_argument' });
});

test('a curriculum goes from easy to hard; equals are shuffled; numbers may lie apart by id', async () => {
  const rows = Array.from({ length: 60 }, (_, n) => ({ n, id: `r${n}`, difficulty: n % 3 }));
  const data = await openDataset(await put(lines(rows)), { idField: 'id' });
  const easy = await numbers(await data.curriculum({ by: 'difficulty', seed: 1 }));
  expect(easy.map((n) => Number(n) % 3)).toEqual([...Array(20).fill(0), ...Array(20).fill(1), ...Array(20).fill(2)]);
  expect(easy.slice(0, 20)).not.toEqual(sorted(easy.slice(0, 20)));
  expect(await numbers(await data.curriculum({ by: 'difficulty', seed: 2 }))).not.toEqual(easy);
  const by = new Map(rows.map(({ id, n }) => [id, -n]));
  expect(await numbers(await data.curriculum({ by, seed: 1 }))).toEqual(ascending(60).reverse());
  expect(await numbers(await data.curriculum({ by, seed: 1, first: 'hard' }))).toEqual(ascending(60));
});

test('a row without difficulty is a row error', async () => {
  const data = await openDataset(await put('{"difficulty":1}\n{"difficulty":"2"}\n'));
  await expect(data.curriculum({ by: 'difficulty', seed: 1 })).rejects.toMatchObject({
    code: 'row_invalid',
    message: expect.stringContaining('line 2, difficulty') as string,
  });
});

test('by measured pass rates, those that were solved most often come first: one by one, or in shuffled stages', async () => {
  const rows = Array.from({ length: 60 }, (_, n) => ({ n, id: n }));
  const rates = rows.map(({ id }) => ({ id, passRate: 1 - id / 59, samples: 8 }));
  const passRates = await readPassRates(await put(lines(rates)));
  const data = await openDataset(await put(lines(rows)), { idField: 'id' });
  expect(await numbers(await data.curriculum({ passRates, seed: 1 }))).toEqual(ascending(60));
  expect(await numbers(await data.curriculum({ passRates, seed: 1, first: 'hard' }))).toEqual(ascending(60).reverse());
  const staged = await numbers(await data.curriculum({ passRates, stages: [39.5 / 59, 19.5 / 59], seed: 1 }));
  const stages = [staged.slice(0, 20), staged.slice(20, 40), staged.slice(40)];
  expect(stages.map(sorted)).toEqual([
    ascending(60).slice(0, 20),
    ascending(60).slice(20, 40),
    ascending(60).slice(40),
  ]);
  for (const stage of stages) expect(stage).not.toEqual(sorted(stage));
});

test('each file can be a stage, and a curriculum goes on where it stood, in compressed files too', async () => {
  const [easy, hard] = [counted(20), lines(ascending(20).map((n) => ({ n: n + 20 })))];
  const data = await openDataset([await put(easy), await put(gzipSync(hard), 'jsonl.gz')]);
  const order = await numbers(await data.curriculum({ stages: 'files', seed: 1 }));
  expect(sorted(order.slice(0, 20))).toEqual(ascending(20));
  expect(order.slice(0, 20)).not.toEqual(ascending(20));
  const rows = await data.curriculum({ stages: 'files', seed: 1 });
  const iterator = rows[Symbol.asyncIterator]();
  for (let i = 0; i < 25; i++) await iterator.next();
  await iterator.return?.();
  const rest = await data.curriculum({ stages: 'files', seed: 1, resume: rows.position() });
  expect(await numbers(rest)).toEqual(order.slice(25));
});

test('a row without a pass rate is a row error, and so is a rate that is none or there twice', async () => {
  const data = await openDataset(await put('{"id":"a"}\n{"id":"b"}\n'), { idField: 'id' });
  await expect(data.curriculum({ passRates: new Map([['a', 1]]), seed: 1 })).rejects.toMatchObject({
    code: 'row_invalid',
    message: expect.stringContaining(
      'line 2, passRate: expected a pass rate for the id of the row, got nothing',
    ) as string,
  });
  const read = async (text: string) => readPassRates(await put(text));
  await expect(read('{"id":"a","passRate":1.5}')).rejects.toThrow(
    /line 1, passRate: expected a number from 0 to 1, got 1.5/,
  );
  await expect(read('{"id":"a","passRate":null}')).rejects.toThrow(/got null/);
  await expect(read('{"passRate":1}')).rejects.toThrow(/line 1, id/);
  await expect(read('{"id":"a","passRate":1}\n{"id":"a","passRate":0}')).rejects.toThrow(/line 2, id/);
});

test('stages that are none, and a curriculum by nothing, are refused', async () => {
  const data = await openDataset(await put('{"id":"a"}'));
  for (const stages of [[], [0], [1.1], [Number.NaN]]) {
    await expect(data.curriculum({ passRates: new Map(), stages, seed: 1 })).rejects.toThrow(/stages: expected/);
  }
  // What a program in JavaScript may do.
  await expect(data.curriculum({ seed: 1 } as CurriculumOptions)).rejects.toThrow(/curriculum: expected by, passRates/);
  const sideways = { by: 'id', first: 'sideways', seed: 1 } as unknown as CurriculumOptions;
  await expect(data.curriculum(sideways)).rejects.toThrow(/first: expected 'easy' or 'hard'/);
});

test('the hash of a data set is that of the bytes of its files, in order, whatever they are called', async () => {
  const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex');
  const { plain, gzip, parquet } = await kindsOf(10);
  for (const data of [plain, gzip, parquet]) {
    const [file = ''] = data.files;
    const bytes = await readFile(file);
    const expected = { sha256: sha256(bytes), sizeBytes: bytes.length };
    expect(await data.hash()).toEqual({ sha256: expected.sha256, files: [{ file, ...expected }] });
  }
  const text = counted(10);
  const inMemory = datasetOf([textSource(text, { file: 'a' })]);
  expect((await inMemory.hash()).sha256).toBe((await plain.hash()).sha256);
  const both = await openDataset([...plain.files, ...gzip.files]);
  const { sha256: whole, files } = await both.as('chat').hash();
  expect(whole).toBe(sha256(files.map((file) => `${file.sha256}\n`).join('')));
  const otherWay = await openDataset([...gzip.files, ...plain.files]);
  expect((await otherWay.hash()).sha256).not.toBe(whole);
  const copy = await openDataset([await put(text), ...gzip.files]);
  expect((await copy.hash()).sha256).toBe(whole);
  await expect(plain.hash({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'cancelled' });
});

test('typed rows and parts of a split are shuffled as they are', async () => {
  const rows = Array.from({ length: 80 }, (_, n) => ({ n, question: `q${n}`, answer: n }));
  const typed = (await openDataset(await put(lines(rows)))).as('rl_prompt');
  const { test: part } = typed.split({ parts: { train: 0.5, test: 0.5 } });
  const inOrder = await numbers(part);
  for await (const { answer, row } of await part.shuffled({ seed: 5 })) expect(answer).toBe(String(row.n));
  expect(sorted(await numbers(await part.shuffled({ seed: 5 })))).toEqual(inOrder);
});

const partsOf = async (data: Dataset, by?: string) => {
  const { train, test } = data.split({ parts: { train: 0.7, test: 0.3 }, ...(by === undefined ? {} : { by }) });
  return { train: await numbers(train), test: await numbers(test) };
};

test('each row is in one part, about as many as asked for, and stays there when rows are added', async () => {
  const before = await partsOf(await openDataset(await put(counted(1000))));
  expect(sorted([...before.train, ...before.test])).toEqual(ascending(1000));
  expect(Math.abs(before.train.length - 700)).toBeLessThan(60);
  const after = await partsOf(await openDataset([await put('{"n":-1}\n'), await put(counted(1200))]));
  expect(after.train.filter((n) => Number(n) >= 0 && Number(n) < 1000)).toEqual(before.train);
});

test('rows of a group, and duplicates under other ids and spellings, are never in two parts', async () => {
  const row = fc.record({
    text: fc.constantFrom('a b', 'A  B ', 'ａ b', 'c'),
    group: fc.constantFrom('g', 'h', 'i', 'j'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 30 }), fc.integer(), async (rows, seed) => {
      const withIds = rows.map((fields, n) => ({ id: `r${n}`, ...fields }));
      const data = await openDataset(await put(lines(withIds)), { idField: 'id' });
      const namesOf = new Map<unknown, Set<string>>();
      const parts = data.split({ parts: { a: 0.4, b: 0.3, c: 0.3 }, by: 'group', seed });
      for (const [name, part] of Object.entries(parts)) {
        for await (const { row: found } of part)
          namesOf.set(found.group, (namesOf.get(found.group) ?? new Set()).add(name));
      }
      expect([...namesOf.values()].every((names) => names.size === 1)).toBe(true);
      const plain = data.split({ parts: { a: 0.5, b: 0.5 }, seed });
      const { exact, normalised } = await findLeaks(plain.a, plain.b);
      expect(exact + normalised).toBe(0);
    }),
    { numRuns: 25 },
  );
});

test('rows with the same prompt, in whatever format and spelling and with whatever answers, are never in two parts', async () => {
  const text = fc.constantFrom('What is 1+1?', 'what is  1+1?', 'Ｗhat is 1+1?', 'Why?', 'How?', 'Who?', 'Where?');
  const answers = fc.record({ prompt: text, answer: fc.integer() });
  const row = answers.chain(({ prompt, answer }) => {
    const user = { role: 'user', content: prompt };
    const said = (content: unknown) => ({ role: 'assistant', content: String(content) });
    return fc.constantFrom<Readonly<Record<string, unknown>>>(
      { question: prompt, answer },
      { prompt: [user], answer },
      { prompt, completion: String(answer) },
      { messages: [user, said(answer), { role: 'user', content: 'And then?' }, said('No.')] },
      { messages: [{ role: 'user', content: [{ type: 'text', text: prompt }] }, said(answer)] },
      { chosen: [user, said(answer)], rejected: [user, said('?')] },
    );
  });
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 30 }), fc.integer(), async (rows, seed) => {
      const data = await openDataset(await put(lines(rows)));
      const { a, b } = data.split({ parts: { a: 0.5, b: 0.5 }, seed });
      expect(await findLeaks(a, b)).toMatchObject({ exact: 0, normalised: 0, prompt: 0 });
    }),
    { numRuns: 50 },
  );
});

test('a prompt that is in both sets with other answers is found, whatever its columns are called', async () => {
  const train = await openDataset(
    await put(lines([{ problem: 'What is 1+1?', solution: 'two' }, { problem: 'Why?' }])),
    {
      fields: { prompt: 'problem', answer: 'solution' },
    },
  );
  const tests = await openDataset(
    await put(
      lines([
        { question: 'Who?', answer: 1 },
        { question: 'what is 1+1?', answer: 2 },
      ]),
    ),
  );
  expect(await findLeaks(train, tests)).toMatchObject({
    exact: 0,
    normalised: 0,
    prompt: 1,
    leaks: [{ kind: 'prompt', at: { line: 2 }, same: { line: 1 } }],
  });
});

test('a field to split by may be named as the formats name it', async () => {
  const rows = Array.from({ length: 40 }, (_, n) => ({ n, problem: `p${n % 4}`, solution: n }));
  const data = await openDataset(await put(lines(rows)), { fields: { prompt: 'problem', answer: 'solution' } });
  expect(await partsOf(data, 'prompt')).toEqual(await partsOf(data, 'problem'));
});

test('rows that two files share are found, with both places', async () => {
  const [first, second, tests] = [
    await put('{"q":"x"}\n'),
    await put('\n{"q":"One  two"}\n'),
    await put('{"q":"y"}\n{"q":"one two"}\n{"q":"x"}'),
  ];
  const report = await findLeaks(await openDataset([first, second]), await openDataset(tests));
  expect(report).toEqual({
    exact: 1,
    normalised: 1,
    prompt: 0,
    rows: { first: 2, second: 3 },
    leaks: [
      { kind: 'normalised', at: { file: tests, line: 2 }, same: { file: second, line: 2 } },
      { kind: 'exact', at: { file: tests, line: 3 }, same: { file: first, line: 1 } },
    ],
  });
});

test.each<Readonly<Record<string, number>>>([{}, { a: 0.5 }, { a: 1.5, b: -0.5 }, { a: Number.NaN }])(
  'shares of %o are refused',
  async (parts) => {
    const data = await openDataset(await put('{}'));
    expect(() => data.split({ parts })).toThrow(/sum to 1/);
  },
);
