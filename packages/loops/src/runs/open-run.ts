/** Opens a run folder: a new one, or one that goes on. */
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import type { DataHash } from '../data/data-hash.js';
import { type DataDigest, dataDigest } from '../data/digest.js';
import { GuardedTracker } from '../tracking/guarded.js';
import { jsonlTracker } from '../tracking/jsonl-tracker.js';
import type { TrackedRun, Tracker } from '../tracking/tracker.js';
import { wholeNumber } from '../training/options.js';
import { changedPaths } from './compare-configs.js';
import { cutJsonl } from './jsonl-file.js';
import { MetProblems, promptHash } from './met-problems.js';
import { plainConfig } from './plain-config.js';
import { checkPrices, type PriceTable } from './prices.js';
import { type KeptSamples, Run, samplesName } from './run.js';
import { alarmsName, checkAlarm } from './run-alarms.js';
import { collectVersions, ownCommand, sourceOf } from './run-facts.js';
import { lockRun } from './run-lock.js';
import { type RunRecord, readRecord, writeRecord } from './run-record.js';
import { checkSample } from './run-samples.js';
import { type AskUsage, UsageMeter } from './run-usage.js';
import { asWriteError, systemCode } from './write-error.js';

export interface OpenRunOptions {
  /** Such as `runs/math`. Where it is there already, the run goes to `runs/math-2` and so on, unless it is resumed. */
  readonly folder: string;
  /** The complete settings. Functions and clients are kept by name, lists of more than 200 by their length, secrets not at all; so a loop's options can be given whole. */
  readonly config: object;
  /** By what they are of. */
  readonly seeds?: Readonly<Record<string, number>>;
  /**
   * Rows or problems by their use, such as `train` and `heldOut`; their number and hash are kept, and in `problems.jsonl` the hashes of their prompts, so that
   * `loopwright eval` finds what was trained on. Of large files, give `await data.hash()`, which knows no prompts; other data is read through once.
   */
  readonly data?: Readonly<Record<string, Iterable<unknown> | AsyncIterable<unknown> | DataDigest | DataHash>>;
  /** Go on in `folder` after this step: what was kept of later ones is dropped. */
  readonly resumeAfter?: number;
  /** Resume although settings differ from those that the run began with; default false: it is refused, naming them. */
  readonly allowChanges?: boolean;
  /** Which samples are kept; default all. */
  readonly samples?: Partial<KeptSamples>;
  /** For the text of prompts in samples. */
  readonly tokenizer?: Tokenizer;
  /** Asked at each step, such as `() => service.usage()`; what others used before counts for nothing. */
  readonly usage?: AskUsage;
  readonly prices?: PriceTable;
  /** Besides the folder's own files. */
  readonly trackers?: readonly Tracker[];
  /** Packages whose versions are kept, besides Loopwright's own. */
  readonly packages?: readonly string[];
  /** A module's URL from which they are resolved; default this package's. */
  readonly packagesFrom?: string;
  /** Default: the command of this process. */
  readonly command?: RunRecord['command'];
  /** Id of the run that this one repeats. */
  readonly repeatOf?: string;
  /** Milliseconds since 1970; default the system's clock. */
  readonly now?: () => number;
}

/**
 * Opens a run folder for one writer: `run.json` (settings, versions, seeds, hashes of the data, commit, command, usage, how it ended), `metrics.jsonl` and
 * `samples.jsonl`. Use {@link withRun}, or call `finish`.
 *
 * @throws `invalid_argument` for wrong options, and for changed settings where it is resumed; `run_in_use`; when resumed, `not_found` and `data_invalid`;
 *   write errors
 * @example
 * await using run = await openRun({ folder: 'runs/math', config: { steps: 30, learningRate: 1e-4 }, seeds: { seed: 1 } });
 * for (let step = 1; step <= 30; step++) await run.step(step, { 'loss/mean': await train() });
 * await run.finish();
 */
export async function openRun(options: OpenRunOptions): Promise<Run> {
  const { resumeAfter, now = Date.now, usage, prices, trackers = [], tokenizer } = options;
  const keep = { groupsPerStep: Number.MAX_SAFE_INTEGER, everySteps: 1, ...options.samples };
  wholeNumber('samples.groupsPerStep', keep.groupsPerStep, 0);
  wholeNumber('samples.everySteps', keep.everySteps, 1);
  checkNames(trackers);
  const meter =
    usage === undefined ? undefined : new UsageMeter(usage, prices === undefined ? undefined : checkPrices(prices));
  if (resumeAfter !== undefined) wholeNumber('resumeAfter', resumeAfter, 0);
  const { facts, prompts } = await factsOf(options);
  const folder = resumeAfter === undefined ? await newFolder(options.folder) : resolve(options.folder);
  const earlier = resumeAfter === undefined ? undefined : await readRecord(folder);
  const lock = await lockRun(folder);
  try {
    const startedAt = new Date(now()).toISOString();
    const record: RunRecord =
      earlier === undefined || resumeAfter === undefined
        ? { format: 1, id: randomUUID(), name: basename(folder), status: 'running', startedAt, ...facts }
        : resumed(earlier, {
            facts,
            allowChanges: options.allowChanges === true,
            at: startedAt,
            afterStep: resumeAfter,
          });
    await writeRecord(folder, record);
    await meter?.start(earlier?.usage);
    const met = await MetProblems.open(folder, { resumeAfter });
    await met.addRows(prompts);
    if (resumeAfter !== undefined) {
      await cutJsonl(join(folder, samplesName), (value) => (checkSample(value)?.step ?? 0) > resumeAfter);
      await cutJsonl(join(folder, alarmsName), (value) => (checkAlarm(value)?.step ?? 0) > resumeAfter);
    }
    const tracked = trackedRun(folder, record);
    const log = jsonlTracker();
    await log.start(resumeAfter === undefined ? tracked : { ...tracked, resumed: { afterStep: resumeAfter } });
    const guarded = trackers.map((tracker) => new GuardedTracker(tracker));
    await Promise.all(
      guarded.map((tracker) => {
        const reference = earlier?.trackers?.[tracker.name]?.reference;
        const from = { afterStep: resumeAfter ?? 0, ...(reference === undefined ? {} : { reference }) };
        return tracker.start(resumeAfter === undefined ? tracked : { ...tracked, resumed: from });
      }),
    );
    const places = guarded.map(({ name, place }) => [name, { ...place, sent: 0, lost: 0 }] as const);
    const told: RunRecord = places.length === 0 ? record : { ...record, trackers: Object.fromEntries(places) };
    if (places.length > 0) await writeRecord(folder, told);
    return new Run({ folder, record: told, lock, log, trackers: guarded, meter, met, keep, tokenizer, now });
  } catch (error) {
    await lock[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * Runs `body` with an open run, and ends it by how `body` ended: `done`, `interrupted` (cancelled) or `failed`.
 *
 * @throws what `openRun` and `body` throw
 */
export async function withRun<T>(options: OpenRunOptions, body: (run: Run) => Promise<T>): Promise<T> {
  const run = await openRun(options);
  let result: T;
  try {
    result = await body(run);
  } catch (error) {
    const isCancelled = LoopwrightError.isInstance(error) && error.code === 'cancelled';
    // The error of the body is the one to tell, should the end not be written either.
    await run.finish(isCancelled ? 'interrupted' : 'failed', isCancelled ? undefined : error).catch(() => undefined);
    throw error;
  }
  await run.finish('done');
  return result;
}

type Facts = Pick<RunRecord, 'config' | 'seeds' | 'data' | 'versions' | 'source' | 'command' | 'repeatOf'>;

async function factsOf({
  config,
  seeds = {},
  data = {},
  packages,
  packagesFrom,
  command = ownCommand(),
  repeatOf,
}: OpenRunOptions): Promise<{ readonly facts: Facts; readonly prompts: Readonly<Record<string, readonly string[]>> }> {
  const prompts: Record<string, string[]> = {};
  const digests = await Promise.all(
    Object.entries(data).map(async ([name, rows]) => {
      prompts[name] = [];
      return [name, await digestOf(rows, prompts[name])] as const;
    }),
  );
  const facts = {
    config: plainConfig(config),
    seeds: { ...seeds },
    data: Object.fromEntries(digests),
    versions: await collectVersions(packages, packagesFrom),
    source: await sourceOf(command.cwd),
    command,
    ...(repeatOf === undefined ? {} : { repeatOf }),
  };
  return { facts, prompts };
}

type GivenData = NonNullable<OpenRunOptions['data']>[string];

/** @param prompts gets the hash of each row's prompt; of data given as a digest there are none */
async function digestOf(data: GivenData, prompts: string[]): Promise<RunRecord['data'][string]> {
  if ('sha256' in data) return { sha256: data.sha256, ...('rows' in data ? { rows: data.rows } : {}) };
  async function* noted(rows: Iterable<unknown> | AsyncIterable<unknown>) {
    for await (const row of rows) {
      prompts.push(promptHash(row));
      yield row;
    }
  }
  return dataDigest(noted(data));
}

/** The folder, made by this call: the first of `path`, `path-2`, … that isn't there. */
async function newFolder(path: string): Promise<string> {
  const whole = resolve(path);
  try {
    await mkdir(dirname(whole), { recursive: true });
    for (let n = 1; ; n++) {
      const folder = n === 1 ? whole : `${whole}-${n}`;
      try {
        await mkdir(folder);
        return folder;
      } catch (error) {
        if (systemCode(error) !== 'EEXIST') throw error;
      }
    }
  } catch (error) {
    throw asWriteError(error, whole);
  }
}

interface Resumption {
  readonly facts: Facts;
  readonly allowChanges: boolean;
  readonly at: string;
  readonly afterStep: number;
}

function resumed(earlier: RunRecord, { facts, allowChanges, at, afterStep }: Resumption): RunRecord {
  const settingsOf = ({ config, seeds, data }: Facts) => plainConfig({ config, seeds, data });
  const changed = changedPaths(settingsOf(earlier), settingsOf(facts));
  if (changed.length > 0 && !allowChanges) {
    throw complaint({
      field: 'options.config',
      expected: 'the settings, seeds and data that the run began with',
      got: `others at ${changed.slice(0, 10).join(', ')}${changed.length > 10 ? ` and ${changed.length - 10} more places` : ''}`,
      remedy: 'set them as they were, or pass allowChanges: true to go on with the new ones',
    });
  }
  const { endedAt: _ended, error: _error, ...rest } = earlier;
  return {
    ...rest,
    ...facts,
    status: 'running',
    resumed: [...(earlier.resumed ?? []), { at, afterStep, ...(changed.length === 0 ? {} : { changed }) }],
  };
}

function trackedRun(folder: string, record: RunRecord): TrackedRun {
  const { id, name, config, seeds, data, versions, source } = record;
  const tags = {
    'loopwright.run': id,
    ...Object.fromEntries(Object.entries(seeds).map(([key, value]) => [`seed.${key}`, String(value)])),
    ...Object.fromEntries(Object.entries(data).map(([key, { sha256 }]) => [`data.${key}.sha256`, sha256])),
    ...Object.fromEntries(Object.entries(versions.packages).map(([key, value]) => [`version.${key}`, value])),
    'version.node': versions.node,
    ...(source === null ? {} : { 'source.commit': source.commit, 'source.dirty': String(source.dirty) }),
  };
  return { id, name, config, tags, folder, startedAtMs: Date.parse(record.startedAt) };
}

function checkNames(trackers: readonly Tracker[]): void {
  const names = trackers.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice === undefined) return;
  throw complaint({ field: 'options.trackers', expected: 'each tracker once', got: `two named ${twice}` });
}
