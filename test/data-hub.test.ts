/** Data sets by their name on the hub: pulled by the command or by a program, then opened from the cache without a question. */
import { join } from 'node:path';
import { FakeHub, type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { openDataset, pullDataset } from 'loopwright';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { runCommand } from './support/command.js';

const [commit, newer] = ['a'.repeat(40), 'b'.repeat(40)] as const;
const rows = (...questions: readonly string[]) =>
  questions.map((question) => `${JSON.stringify({ question, answer: 1 })}\n`).join('');

let folder: TemporaryDirectory;
let hub: FakeHub;

beforeEach(async () => {
  folder = await temporaryDirectory();
  hub = await FakeHub.open({ repositories: {} });
  vi.stubEnv('HF_HUB_CACHE', join(folder.path, 'hub'));
  vi.stubEnv('HF_ENDPOINT', hub.url);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await hub[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

function pull(...args: readonly string[]) {
  const env = { HF_ENDPOINT: hub.url, HF_HUB_CACHE: join(folder.path, 'hub') };
  return runCommand(['data', 'pull', ...args], { home: join(folder.path, 'home'), env });
}

async function questions(source: Parameters<typeof openDataset>[0]): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const { row } of await openDataset(source)) found.push(row.question);
  return found;
}

/** Two configurations by the card, and files that nobody asked for. */
const sums = {
  commit,
  license: 'mit',
  configs: [
    {
      config_name: 'main',
      data_files: [
        { split: 'train', path: 'main/train-*' },
        { split: 'test', path: ['main/test-*'] },
      ],
    },
    { config_name: 'socratic', data_files: [{ split: 'train', path: 'socratic/*.jsonl' }] },
  ],
  files: {
    'README.md': 'x',
    'main/train-00000-of-00002.jsonl': rows('1+1', '2+2'),
    'main/train-00001-of-00002.jsonl': rows('3+3'),
    'main/test-00000-of-00001.jsonl': rows('4+4'),
    'socratic/train.jsonl': rows('why?'),
    '../../outside.jsonl': rows('no'),
  },
};

test('a pulled split is opened by its name, from the cache alone, with places that tell the commit', async () => {
  hub.repositories['datasets/someone/sums'] = sums;
  const source = { hub: 'someone/sums', config: 'main', split: 'train' };
  await expect(openDataset(source)).rejects.toMatchObject({
    code: 'not_found',
    details: {
      remedy: expect.stringContaining('loopwright data pull someone/sums --config main --split train') as string,
    },
  });
  expect(hub.requests).toEqual([]);
  const { code, events } = await pull('someone/sums', '--config', 'main', '--json');
  expect(code).toBe(0);
  expect(events[0]).toMatchObject({ type: 'pull-start', dataset: 'someone/sums', splits: ['train', 'test'], files: 3 });
  expect(events.at(-1)).toMatchObject({ type: 'pull-end', id: `someone/sums@${commit}`, config: 'main' });
  const asked = hub.requests.length;
  expect(await questions(source)).toEqual(['1+1', '2+2', '3+3']);
  expect(await questions({ ...source, split: 'test' })).toEqual(['4+4']);
  for await (const { at } of await openDataset({ ...source, split: 'test' })) {
    expect(at).toEqual({ file: `someone/sums@${commit}/main/test-00000-of-00001.jsonl`, line: 1 });
  }
  expect(hub.requests).toHaveLength(asked);
  expect(hub.downloadsOf('train.jsonl')).toEqual([]);
  // What is there is not downloaded again.
  await pullDataset({ hub: 'someone/sums', config: 'main' });
  expect(hub.requests).toHaveLength(asked + 1);
});

test('a name that moves on is followed by the next pull only, and a commit stays what it was; offline, the cache is used', async () => {
  hub.repositories['datasets/someone/sums'] = sums;
  const source = { hub: 'someone/sums', config: 'socratic', split: 'train' };
  await pullDataset(source);
  hub.repositories['datasets/someone/sums'] = { ...sums, commit: newer, files: { 'socratic/a.jsonl': rows('how?') } };
  expect(await questions(source)).toEqual(['why?']);
  vi.stubEnv('HF_HUB_OFFLINE', '1');
  expect(await pullDataset(source)).toMatchObject({ commit, splits: ['train'] });
  await expect(pullDataset({ ...source, hub: 'someone/else' })).rejects.toMatchObject({ code: 'not_found' });
  vi.stubEnv('HF_HUB_OFFLINE', '0');
  expect(await pullDataset(source)).toMatchObject({ commit: newer });
  expect(await questions(source)).toEqual(['how?']);
  expect(await questions({ ...source, revision: commit })).toEqual(['why?']);
});

test('parts that there are not, and parts that are not told apart, are refused with a list of those that there are', async () => {
  hub.repositories['datasets/someone/sums'] = sums;
  const open = (part: object) =>
    pullDataset({ hub: 'someone/sums', ...part }).then(() => openDataset({ hub: 'someone/sums', ...part }));
  await expect(open({})).rejects.toThrow(/config: expected one of main, socratic, got nothing/);
  await expect(open({ config: 'none' })).rejects.toThrow(/config: expected one of main, socratic, got none/);
  await expect(open({ config: 'main', split: 'dev' })).rejects.toThrow(/split: expected one of train, test, got dev/);
  await expect(open({ config: 'main' })).rejects.toThrow(/split: expected one of train, test, got nothing/);
  await expect(openDataset({ hub: './sums' })).rejects.toMatchObject({ code: 'invalid_argument' });
});

test('without a card, names of files tell splits; the conversion of the hub is read as it lies; others are refused with a way out', async () => {
  hub.repositories['datasets/someone/plain'] = {
    commit,
    files: {
      'data/train.jsonl': rows('a'),
      'data/valid.jsonl': rows('b'),
      'eval/x.jsonl': rows('c'),
      '../eval/y.jsonl': rows('no'),
    },
  };
  expect(await pullDataset({ hub: 'someone/plain' })).toMatchObject({
    config: 'default',
    splits: ['train', 'validation', 'test'],
  });
  expect(await questions({ hub: 'someone/plain', split: 'test' })).toEqual(['c']);
  hub.repositories['datasets/someone/table'] = { commit, files: { 'train.csv': 'a,b' } };
  await expect(pullDataset({ hub: 'someone/table' })).rejects.toMatchObject({
    code: 'data_invalid',
    details: { remedy: expect.stringContaining('someone/table@refs/convert/parquet') as string },
  });
  hub.repositories['datasets/someone/table'] = {
    commit: newer,
    revisions: ['refs/convert/parquet'],
    files: { 'en/train/0000.parquet': 'PAR1', 'en/partial-test/0000.parquet': 'PAR1', 'fr/train/0000.parquet': 'PAR1' },
  };
  const converted = { hub: 'someone/table', revision: 'refs/convert/parquet', config: 'en' };
  expect(await pullDataset(converted)).toMatchObject({ splits: ['train', 'test'] });
  expect((await openDataset({ ...converted, split: 'test' })).files).toEqual([
    `someone/table@${newer}/en/partial-test/0000.parquet`,
  ]);
});

test('a set that is not there, one under a licence and wrong bytes are refused in words of data sets', async () => {
  await expect(pullDataset({ hub: 'someone/none' })).rejects.toMatchObject({
    code: 'not_found',
    details: { expected: expect.stringContaining('a data set of') as string },
  });
  hub.repositories['datasets/someone/gated'] = { ...sums, gated: 'auto' };
  const gated = { hub: 'someone/gated', config: 'socratic' };
  await expect(pullDataset(gated)).rejects.toMatchObject({
    code: 'model_gated',
    details: { remedy: expect.stringContaining('data pull someone/gated --accept-license') as string },
  });
  hub.wrong['train.jsonl'] = new TextEncoder().encode(rows('WHY?'));
  await expect(pullDataset(gated, { acceptLicense: true })).rejects.toMatchObject({ code: 'data_invalid' });
  hub.wrong['train.jsonl'] = new TextEncoder().encode(rows('why?'));
  expect(await pullDataset(gated)).toMatchObject({ splits: ['train'] });
});
