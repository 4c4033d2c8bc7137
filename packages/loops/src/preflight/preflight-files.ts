/** The files of a preflight: what was measured so far, the pass rates, and the problems worth training on. For Node. */
import { createHash } from 'node:crypto';
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { complaint } from '@loopwright/protocol';
import type { Problem } from '../environments/environment.js';
import type { Preflight, PromptRate } from './words.js';

export interface PreflightFiles {
  /** What an earlier attempt measured under the same key. */
  readonly measured: ReadonlyMap<string, PromptRate>;
  /** Adds a line to `progress.jsonl`. */
  record(rate: PromptRate): Promise<void>;
  /**
   * Writes `report.json`, `rates.jsonl` (`{id, passRate, n}` of each prompt, as `readPassRates` reads it) and `train-10-90.jsonl`, the problems
   * between 10 and 90 %. @returns their paths
   */
  write<P extends Problem>(
    result: Preflight<P>,
  ): Promise<{ readonly report: string; readonly rates: string; readonly useful: string }>;
}

/**
 * Opens a folder, new or of an earlier attempt.
 *
 * @param settings all that pass rates depend on (model, samples, seed, …): those of other settings are not gone on with
 * @throws `invalid_argument` where an earlier attempt had others
 */
export async function openPreflightFiles(
  directory: string,
  settings: Readonly<Record<string, unknown>>,
): Promise<PreflightFiles> {
  const progress = join(directory, 'progress.jsonl');
  const key = createHash('sha256').update(JSON.stringify(settings)).digest('hex');
  await mkdir(directory, { recursive: true });
  const text = await readFile(progress, 'utf8').catch(() => '');
  const lines = text.split('\n');
  const [head, ...rates] = lines.flatMap((line) => {
    const value = parsed(line);
    return value === undefined ? [] : [value];
  });
  if (head === undefined) await writeFile(progress, `${JSON.stringify({ format: 'loopwright-preflight', key })}\n`);
  else if (head.key !== key) {
    throw complaint({
      field: 'directory',
      expected: 'an empty folder, or one of an earlier attempt with the same task, model and settings',
      got: `other measurements in ${directory}`,
      remedy: 'delete it, or name another folder',
    });
  } else if (!text.endsWith('\n')) await appendFile(progress, '\n'); // the last line was cut off
  const measured = new Map(rates.flatMap((rate) => (isRate(rate) ? [[rate.id, rate] as const] : [])));
  return {
    measured,
    record: (rate) => appendFile(progress, `${JSON.stringify(rate)}\n`),
    async write({ report, rates, useful }) {
      const paths = {
        report: join(directory, 'report.json'),
        rates: join(directory, 'rates.jsonl'),
        useful: join(directory, 'train-10-90.jsonl'),
      };
      await writeFile(paths.report, `${JSON.stringify(report, undefined, 2)}\n`);
      await writeFile(paths.rates, jsonl(rates.map(({ id, passRate, n }) => ({ id, passRate, n }))));
      await writeFile(paths.useful, jsonl(useful));
      return paths;
    },
  };
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
];

function isRate(row: Readonly<Record<string, unknown>>): row is Readonly<Record<string, unknown>> & PromptRate {
  return typeof row.id === 'string' && counts.every((name) => Number.isFinite(row[name]));
}
