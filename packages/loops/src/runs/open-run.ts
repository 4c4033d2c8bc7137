/** Opens a run folder: a new one, or one that goes on. */
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import { counted } from '../counted.js';
import type { DataHash } from '../data/data-hash.js';
import { type DataDigest, dataDigest } from '../data/digest.js';
import { checkTaskName } from '../tasks/define-task.js';
import { GuardedTracker } from '../tracking/guarded.js';
import { jsonlTracker } from '../tracking/jsonl-tracker.js';
import type { TrackedRun, Tracker } from '../tracking/tracker.js';
import { wholeNumber } from '../training/options.js';
import { type ChangedSetting, changedSettings, changedVersions } from './changed-settings.js';
import { type Checkpoint, readCheckpoints } from './checkpoint-file.js';
import { cutRun } from './cut-run.js';
import { graderVersion } from './grader-version.js';
import { makeFolder } from './make-folder.js';
import { MetProblems, promptHash } from './met-problems.js';
import { plainConfig } from './plain-config.js';
import { checkPrices, type PriceTable } from './prices.js';
import { type KeptSamples, Run } from './run.js';
import { collectVersions, ownCommand, sourceOf } from './run-facts.js';
import { lockRun } from './run-lock.js';
import { type RunRecord, type RunUsage, readRecord, writeRecord } from './run-record.js';
import { type AskUsage, UsageMeter } from './run-usage.js';
import { RunWarnings } from './run-warnings.js';
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
  /** The task's name and its module, or the module alone, such as `fileURLToPath(new URL('task.ts', import.meta.url))`: name and version of its grader are kept. */
  readonly task?: string | TaskOrigin;
  /**
   * Go on in `folder` after its newest checkpoint, or the one that this function chooses of them, newest first: what was kept of later steps is dropped.
   * Without a checkpoint it begins again, in the same folder.
   */
  readonly resume?: boolean | ChooseCheckpoint;
  /** Go on in `folder` after this step, for programs that know where they stand by themselves. */
  readonly resumeAfter?: number;
  /** Names of settings that may differ from those that the run began with, besides `steps`, `epochs`, `maxSteps`, `checkpointEvery` and `keepCheckpoints`. */
  readonly mayChange?: readonly string[];
  /** Resume although others differ; default false: it is refused, naming them. */
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
  /** Told at once of what goes wrong without stopping the run, such as a tracker that can't be reached; default: `console.warn`. Also in `run.warnings`. */
  readonly onWarning?: (message: string) => void;
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

/** Where a task comes from: its module isn't loaded for its name. */
export interface TaskOrigin {
  /** Of the task, as it calls itself. */
  readonly name: string;
  /** Path of the module that exports it. */
  readonly file: string;
}

/** Nobody else can go on with the run meanwhile. Undefined is to begin again. */
export type ChooseCheckpoint = (
  newestFirst: readonly Checkpoint[],
  record: RunRecord,
) => Promise<Checkpoint | undefined>;

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
  const { resume = false, resumeAfter, now = Date.now, usage, prices, trackers = [], tokenizer } = options;
  const { onWarning = (message) => console.warn(message) } = options;
  const keep = { groupsPerStep: Number.MAX_SAFE_INTEGER, everySteps: 1, ...options.samples };
  wholeNumber('samples.groupsPerStep', keep.groupsPerStep, 0);
  wholeNumber('samples.everySteps', keep.everySteps, 1);
  checkNames(trackers);
  const meter =
    usage === undefined ? undefined : new UsageMeter(usage, prices === undefined ? undefined : checkPrices(prices));
  if (resumeAfter !== undefined) wholeNumber('resumeAfter', resumeAfter, 0);
  const { facts, prompts } = await factsOf(options);
  const isNew = resume === false && resumeAfter === undefined;
  const folder = isNew ? await newFolder(options.folder) : resolve(options.folder);
  if (!isNew) await readRecord(folder); // a folder that is no run gets no lock
  const lock = await lockRun(folder);
  try {
    const startedAt = new Date(now()).toISOString();
    const from = isNew ? undefined : await resumptionOf(folder, { facts, options });
    const record: RunRecord =
      from === undefined
        ? { format: 1, id: randomUUID(), name: basename(folder), status: 'running', startedAt, ...facts }
        : resumed(from, { facts, at: startedAt });
    await writeRecord(folder, record);
    await meter?.start(from?.usage);
    if (from !== undefined)
      await cutRun(folder, { lastKept: from.lastKept, measuresAgain: from.checkpoint !== undefined });
    const met = await MetProblems.open(folder);
    await met.addRows(prompts);
    const warnings = new RunWarnings(onWarning);
    const tracked = { ...trackedRun(folder, record), warn: warnings.add };
    const log = jsonlTracker();
    const resumption = from && { afterStep: from.lastKept, atMs: Date.parse(startedAt) };
    await log.start(resumption === undefined ? tracked : { ...tracked, resumed: resumption });
    const guarded = trackers.map((tracker) => new GuardedTracker(tracker));
    await Promise.all(
      guarded.map((tracker) => {
        const reference = from?.earlier.trackers?.[tracker.name]?.reference;
        const place = resumption && { ...resumption, ...(reference === undefined ? {} : { reference }) };
        return tracker.start(place === undefined ? tracked : { ...tracked, resumed: place });
      }),
    );
    const places = guarded.map(({ name, place }) => [name, { ...place, sent: 0, lost: 0 }] as const);
    const told: RunRecord = places.length === 0 ? record : { ...record, trackers: Object.fromEntries(places) };
    if (places.length > 0) await writeRecord(folder, told);
    const { checkpoint } = from ?? {};
    const versions =
      from === undefined ? [] : changedVersions({ versions: from.earlier.versions }, { versions: facts.versions });
    const changes = [...(from?.changed.map(({ told: text }) => text) ?? []), ...versions];
    return new Run({
      folder,
      record: told,
      checkpoint,
      changes,
      lock,
      log,
      trackers: guarded,
      warnings,
      meter,
      met,
      keep,
      tokenizer,
      now,
    });
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

type Facts = Pick<
  RunRecord,
  'config' | 'seeds' | 'data' | 'versions' | 'source' | 'task' | 'grader' | 'command' | 'repeatOf'
>;

async function factsOf({
  config,
  seeds = {},
  data = {},
  packages,
  packagesFrom,
  command = ownCommand(),
  repeatOf,
  task,
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
    ...(await taskFacts(task)),
    command,
    ...(repeatOf === undefined ? {} : { repeatOf }),
  };
  return { facts, prompts };
}

async function taskFacts(task: OpenRunOptions['task']): Promise<Pick<RunRecord, 'task' | 'grader'>> {
  if (task === undefined) return {};
  if (typeof task === 'string') return { grader: await graderVersion(task) };
  checkTaskName('options.task.name', task.name);
  return { task: task.name, grader: await graderVersion(task.file) };
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
    await makeFolder(dirname(whole));
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
  readonly earlier: RunRecord;
  readonly checkpoint: Checkpoint | undefined;
  readonly afterStep: number;
  /** Of the lines of steps; −1 where the run begins again. */
  readonly lastKept: number;
  readonly usage: readonly RunUsage[] | undefined;
  readonly changed: readonly ChangedSetting[];
}

/** Where a run goes on. Its lock is held, so nobody else moves it. */
async function resumptionOf(
  folder: string,
  {
    facts,
    options: { resume, resumeAfter, mayChange = [], allowChanges = false },
  }: { readonly facts: Facts; readonly options: OpenRunOptions },
): Promise<Resumption> {
  const earlier = await readRecord(folder);
  const changed = changedSettings(earlier, facts, { mayChange, allowAll: allowChanges });
  if (resumeAfter !== undefined) {
    const place = { afterStep: resumeAfter, lastKept: resumeAfter };
    return { ...place, earlier, checkpoint: undefined, usage: earlier.usage, changed };
  }
  const { checkpoints } = await readCheckpoints(folder);
  if (earlier.status === 'done' && changed.length === 0) throw nothingLeft(folder, checkpoints);
  const checkpoint = typeof resume === 'function' ? await resume(checkpoints, earlier) : checkpoints[0];
  const { step = 0, usage = [] } = checkpoint ?? {};
  return { earlier, checkpoint, afterStep: step, lastKept: checkpoint === undefined ? -1 : step, usage, changed };
}

function nothingLeft(folder: string, [newest]: readonly Checkpoint[]): Error {
  return complaint({
    field: folder,
    expected: 'a run with something left to do',
    got: `one that is done${newest === undefined ? '' : `, after its ${counted(newest.step, 'step')}`}`,
    remedy: 'raise its steps (or epochs) to go on',
  });
}

function resumed(
  { earlier, afterStep, changed }: Resumption,
  { facts, at }: { readonly facts: Facts; readonly at: string },
): RunRecord {
  const { endedAt: _ended, error: _error, ...rest } = earlier;
  const { command, repeatOf: _repeat, ...settings } = facts;
  const entry = {
    at,
    afterStep,
    ...(changed.length === 0 ? {} : { changed: changed.map(({ path }) => path) }),
    command,
  };
  // The command stays the one that began the run: that is what is to be repeated.
  return { ...rest, ...settings, status: 'running', resumed: [...(earlier.resumed ?? []), entry] };
}

function trackedRun(folder: string, record: RunRecord): Omit<TrackedRun, 'warn'> {
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
