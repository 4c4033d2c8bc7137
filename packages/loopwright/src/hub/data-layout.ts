/** Which files of a data set make which configuration and split: as its card says or, without one, as their names do. */
import { dataFileEndings } from '@loopwright/loops/node';
import { complaint } from '@loopwright/protocol';
import * as z from 'zod';
import { globMatcher } from './glob.js';
import type { RepositoryFile, RepositoryInfo } from './hub-client.js';
import { datasetKind } from './repository-kind.js';

export interface DataPart<F extends { readonly path: string } = RepositoryFile> {
  readonly config: string;
  readonly split: string;
  /** Sorted by path. */
  readonly files: readonly F[];
}

/** The branch on which the hub keeps its own conversion of a public data set. */
const convertedRevision = 'refs/convert/parquet';
const convertedFile = /^([^/]+)\/(?:partial-)?([^/]+?)(?:-part\d+)?\/\d{4}\.parquet$/;
const defaultConfig = 'default';
/** Words in names of files and folders, as the hub knows them. */
const splitWords: readonly (readonly [string, RegExp])[] = [
  ['test', /(?:^|[^a-z0-9])(?:test|testing|eval|evaluation)(?![a-z0-9])/i],
  ['validation', /(?:^|[^a-z0-9])(?:validation|valid|val|dev)(?![a-z0-9])/i],
  ['train', /(?:^|[^a-z0-9])(?:train|training)(?![a-z0-9])/i],
];

const pathsSchema = z.union([z.string(), z.array(z.string()).max(10_000)]);
const configSchema = z.looseObject({
  config_name: z.string().min(1).max(200),
  data_files: z.union([
    pathsSchema,
    z.array(z.object({ split: z.string().min(1).max(200), path: pathsSchema })).max(1000),
  ]),
});

/** @throws `data_invalid` when no file can be read */
export function dataParts({ repository, files, configs = [] }: RepositoryInfo): readonly DataPart[] {
  const readable = files.filter(
    ({ path }) => isSafe(path) && dataFileEndings.some((ending) => path.toLowerCase().endsWith(ending)),
  );
  const parts = configs.flatMap((config) => partsOfConfig(config, readable)).filter(({ files }) => files.length > 0);
  if (parts.length > 0) return parts;
  if (readable.length > 0) return partsByName(readable);
  throw complaint({
    code: datasetKind.invalid,
    field: repository,
    expected: `files that end in ${dataFileEndings.join(', ')}`,
    got: `none among ${files.length} files`,
    remedy: `try the hub's own conversion, which most public data sets have: ${datasetKind.pull} ${repository}@${convertedRevision}`,
  });
}

function partsOfConfig(config: unknown, readable: readonly RepositoryFile[]): DataPart[] {
  const parsed = configSchema.safeParse(config);
  if (!parsed.success) return [];
  const { config_name: name, data_files: patterns } = parsed.data;
  const matching = (paths: string | readonly string[]): RepositoryFile[] => {
    const matchers = [paths].flat().map(globMatcher);
    return readable.filter(({ path }) => matchers.some((matches) => matches?.(path) === true));
  };
  const isBySplit = typeof patterns !== 'string' && patterns.some((pattern) => typeof pattern === 'object');
  if (!isBySplit) {
    return partsByName(matching(patterns as string | string[])).map((part) => ({ ...part, config: name })); // true: of texts
  }
  return patterns.flatMap((pattern) => {
    if (typeof pattern === 'string') return [];
    return [{ config: name, split: pattern.split, files: oneFormat(matching(pattern.path)) }];
  });
}

/** By the layout of the hub's conversion, else by the words in their names; files without such a word are `train`. */
function partsByName(files: readonly RepositoryFile[]): DataPart[] {
  const parts = new Map<
    string,
    { readonly config: string; readonly split: string; readonly files: RepositoryFile[] }
  >();
  const isConverted = files.every(({ path }) => convertedFile.test(path));
  for (const file of files) {
    const converted = isConverted ? convertedFile.exec(file.path) : null;
    const config = converted?.[1] ?? defaultConfig;
    const split = converted?.[2] ?? splitOf(file.path);
    const part = parts.get(`${config}/${split}`) ?? { config, split, files: [] };
    part.files.push(file);
    parts.set(`${config}/${split}`, part);
  }
  return [...parts.values()].map((part) => ({ ...part, files: oneFormat(part.files) }));
}

function splitOf(path: string): string {
  // Of shards, the name says it itself, whatever it is: data/train_sft-00000-of-00003.parquet.
  const shard = /(?:^|\/)([\w.]+)-\d{5}-of-\d{5}\.[^/]*$/.exec(path)?.[1];
  return shard ?? splitWords.find(([, word]) => word.test(path))?.[0] ?? 'train';
}

/** Sorted; of sets that are there in several formats, the Parquet files: all would be rows twice. */
function oneFormat(files: readonly RepositoryFile[]): RepositoryFile[] {
  const parquet = files.filter(({ path }) => path.toLowerCase().endsWith('.parquet'));
  return [...(parquet.length > 0 ? parquet : files)].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Paths come from outside: those that lead out of the snapshot are left out. */
function isSafe(path: string): boolean {
  return /^[^\\:\0]+$/.test(path) && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
}

export interface PartChoice {
  readonly config?: string;
  readonly split?: string;
}

const shownNames = 20;

/** The parts that are meant: of one configuration; of one split where that is named. @throws `invalid_argument` listing what there is */
export function chooseParts<F extends { readonly path: string }>(
  parts: readonly DataPart<F>[],
  { config, split }: PartChoice,
): readonly [DataPart<F>, ...DataPart<F>[]] {
  const configs = [...new Set(parts.map((part) => part.config))];
  const usual = configs.length === 1 ? configs[0] : configs.find((name) => name === defaultConfig);
  const chosen = config ?? usual;
  if (chosen === undefined || !configs.includes(chosen)) throw unknownPart('config', configs, config);
  const ofConfig = parts.filter((part) => part.config === chosen);
  const [first, ...others] = ofConfig.filter((part) => split === undefined || part.split === split);
  if (first !== undefined) return [first, ...others];
  throw unknownPart(
    'split',
    ofConfig.map((part) => part.split),
    split,
  );
}

/** @throws `invalid_argument` when there are several splits, and none is named */
export function onePart<F extends { readonly path: string }>(
  parts: readonly [DataPart<F>, ...DataPart<F>[]],
): DataPart<F> {
  // Train and test as one set would be a leak by default.
  if (parts.length > 1)
    throw unknownPart(
      'split',
      parts.map(({ split }) => split),
      undefined,
    );
  return parts[0];
}

function unknownPart(field: 'config' | 'split', names: readonly string[], got: string | undefined) {
  const more = names.length > shownNames ? ` and ${names.length - shownNames} more` : '';
  const expected = `one of ${names.slice(0, shownNames).join(', ')}${more}`;
  return complaint({ field, expected, got: got ?? 'nothing', remedy: `name the ${field} that you want` });
}
