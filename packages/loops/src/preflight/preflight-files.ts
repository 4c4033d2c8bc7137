/** The files of a preflight: what was measured so far, the pass rates, and the problems worth training on. For Node. */
import { createHash } from 'node:crypto';
import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { complaint } from '@loopwright/protocol';
import type { Problem } from '../environments/environment.js';
import { writeTextAtomically } from '../runs/atomic-file.js';
import { makeFolder } from '../runs/make-folder.js';
import { lockRun } from '../runs/run-lock.js';
import { asWriteError, systemCode } from '../runs/write-error.js';
import type { FormRate, MeasuredSteps, Preflight, PromptRate } from './words.js';

export interface PreflightFiles extends AsyncDisposable {
  /** What an earlier attempt measured under the same key. */
  readonly measured: ReadonlyMap<string, PromptRate>;
  /** The steps that it measured. */
  readonly step: MeasuredSteps | undefined;
  /** What it drew until it could be read, of the bound that was drawn to last. */
  readonly forms: ReadonlyMap<string, FormRate>;
  /** Adds a line to `progress.jsonl`. */
  record(rate: PromptRate): Promise<void>;
  /** Likewise; the last one counts. */
  recordStep(step: MeasuredSteps): Promise<void>;
  /** Likewise, of each prompt. */
  recordForm(form: FormRate): Promise<void>;
  /**
   * Writes `report.json`, `rates.jsonl` (`{id, passRate, n}` of each prompt, as `readPassRates` reads it) and `train-10-90.jsonl`, the problems
   * between 10 and 90 %, each file whole or not at all. @returns their paths
   */
  write<P extends Problem>(
    result: Preflight<P>,
  ): Promise<{ readonly report: string; readonly rates: string; readonly useful: string }>;
}

export interface PreflightFolderOptions {
  /** Forget what an earlier attempt measured; default false. */
  readonly fresh?: boolean;
}

/**
 * Opens a folder, new or of an earlier attempt; until it is disposed no other process has it.
 *
 * @param settings all that pass rates depend on (model, samples, seed, …): those of other settings are not gone on with
 * @throws `invalid_argument` where an earlier attempt had others, or the place can't be written to; `run_in_use`; `disk_full`
 */
export async function openPreflightFiles(
  directory: string,
  settings: Readonly<Record<string, unknown>>,
  { fresh = false }: PreflightFolderOptions = {},
): Promise<PreflightFiles> {
  const progress = join(directory, 'progress.jsonl');
  await orWriteError(directory, () => makeFolder(directory));
  const lock = await lockRun(directory, { what: 'preflight folder' });
  try {
    const key = createHash('sha256').update(JSON.stringify(settings)).digest('hex');
    const text = fresh ? '' : await readFile(progress, 'utf8').catch((error: unknown) => noneYet(error, progress));
    const [head, ...rows] = text
      .split('\n')
      .map(parsed)
      .filter((row) => row !== undefined);
    if (head === undefined)
      await writeTextAtomically(progress, `${JSON.stringify({ format: 'loopwright-preflight', key })}\n`);
    else if (head.key !== key) throw otherMeasurements(directory);
    const append = (line: string) => orWriteError(progress, () => appendFile(progress, line));
    if (head !== undefined && !text.endsWith('\n')) await append('\n'); // the last line was cut off
    return {
      measured: new Map(rows.flatMap((row) => (isRate(row) ? [[row.id, row] as const] : []))),
      step: rows.flatMap((row) => (isSteps(row.step) ? [row.step] : [])).at(-1),
      forms: new Map(rows.flatMap((row) => (isForm(row.form) ? [[row.form.id, row.form] as const] : []))),
      record: (rate) => append(`${JSON.stringify(rate)}\n`),
      recordStep: (step) => append(`${JSON.stringify({ step })}\n`),
      recordForm: (form) => append(`${JSON.stringify({ form })}\n`),
      write: (result) => writeResult(directory, result),
      [Symbol.asyncDispose]: () => lock[Symbol.asyncDispose](),
    };
  } catch (error) {
    await lock[Symbol.asyncDispose]();
    throw error;
  }
}

async function writeResult<P extends Problem>(directory: string, { report, rates, useful }: Preflight<P>) {
  const paths = {
    report: join(directory, 'report.json'),
    rates: join(directory, 'rates.jsonl'),
    useful: join(directory, 'train-10-90.jsonl'),
  };
  await writeTextAtomically(paths.rates, jsonl(rates.map(({ id, passRate, n }) => ({ id, passRate, n }))));
  await writeTextAtomically(paths.useful, jsonl(useful));
  await writeTextAtomically(paths.report, `${JSON.stringify(report, undefined, 2)}\n`);
  return paths;
}

function otherMeasurements(directory: string): Error {
  return complaint({
    field: 'directory',
    expected: 'an empty folder, or one of an earlier attempt with the same task, model and settings',
    got: `other measurements in ${directory}`,
    remedy: 'measure anew (--fresh), or name another folder (--out)',
  });
}

async function orWriteError(path: string, write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    throw asWriteError(error, path);
  }
}

function jsonl(rows: readonly object[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}

function parsed(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined; // true: an object
  } catch {
    return undefined; // cut off when the attempt ended: measured again
  }
}

const counts = [
  'n',
  'correct',
  'passRate',
  'sampled',
  'unparsed',
  'truncated',
  'graderErrors',
  'promptTokens',
  'completionTokens',
  'prefillTokens',
  'trainingTokens',
];

/** Measurements that are there but can't be read are not written over. */
function noneYet(error: unknown, path: string): string {
  const code = systemCode(error);
  if (code === 'ENOENT') return '';
  throw complaint({
    field: path,
    expected: 'a file that this user may read',
    got: code ?? 'another error',
    remedy: 'change its rights, or choose another folder with --out',
    cause: error,
  });
}

function isRate(row: Readonly<Record<string, unknown>>): row is Readonly<Record<string, unknown>> & PromptRate {
  return typeof row.id === 'string' && hasCounts(row, counts);
}

const formCounts = [
  ...['mostDraws', 'readable', 'correct', 'neverRead'],
  ...['graderErrors', 'drawnAgain', 'sampledTokens', 'prefillTokens'],
];

function isForm(form: unknown): form is FormRate {
  return hasCounts(form, formCounts) && typeof form.id === 'string';
}

const stepCounts = [
  ...['n', 'groups', 'groupSize', 'rank', 'sampledTokens', 'trainingTokens'],
  ...['collectMs', 'graderMs', 'passMs', 'updateMs', 'minMs', 'maxMs'],
];

function isSteps(step: unknown): step is MeasuredSteps {
  return hasCounts(step, stepCounts) && (step.heldBytes === undefined || Number.isFinite(step.heldBytes));
}

function hasCounts(value: unknown, names: readonly string[]): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const row = value as Readonly<Record<string, unknown>>; // true: an object
  return names.every((name) => Number.isFinite(row[name]));
}
