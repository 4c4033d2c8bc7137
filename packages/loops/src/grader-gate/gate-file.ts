/** grader-gate.json: the result beside the task, so that a run can ask for it. For Node. */
import { writeSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { complaint } from '@loopwright/protocol';
import type { JsonValue } from '../data/row.js';
import { contentId } from '../data/row-hash.js';
import type { Problem } from '../environments/environment.js';
import { writeTextAtomically } from '../runs/atomic-file.js';
import type { Task } from '../tasks/task.js';
import { checkReason, type GateDecision, requireGate } from './require-gate.js';
import { testGrader } from './test-grader.js';
import type { GateResult } from './words.js';

/** A time that a run began with a grader that fails. */
export interface GateOverride {
  readonly reason: string;
  /** ISO 8601, UTC. */
  readonly at: string;
}

export interface GateFile {
  readonly result: GateResult;
  readonly overrides: readonly GateOverride[];
}

/** Its name beside a task. */
export const gateFileName = 'grader-gate.json';

/** Writes a new result. Overrides of an earlier one are dropped: they were about another grader. */
export async function writeGate(file: string, result: GateResult): Promise<void> {
  await write(file, { result, overrides: [] });
}

async function write(file: string, { result, overrides }: GateFile): Promise<void> {
  const text = JSON.stringify({ ...result, hash: hashOf(result), overrides }, undefined, 2);
  await writeTextAtomically(file, `${text}\n`);
}

/**
 * @throws `not_found`; `invalid_argument` for a file that is no result, is of another version, or was changed by hand
 */
export async function readGate(file: string): Promise<GateFile> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    throw complaint({
      code: 'not_found',
      field: 'gate',
      expected: 'the result of a grader test',
      got: `none at ${file}`,
      remedy: 'run loopwright grader test TASK',
      cause,
    });
  }
  const refuse = (got: string) =>
    complaint({
      field: 'gate',
      expected: `a result as loopwright grader test writes it, at ${file}`,
      got,
      remedy: 'run loopwright grader test TASK again',
    });
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw refuse('a file that is no JSON');
  }
  if (typeof parsed !== 'object' || parsed === null) throw refuse('no object');
  const { hash, overrides = [], ...rest } = parsed as Readonly<Record<string, unknown>>; // true: it is an object
  if (rest.format !== 'loopwright-grader-gate') throw refuse('another kind of file');
  if (rest.version !== 1) throw refuse('a version that this program does not know');
  const result = rest as unknown as GateResult; // true where the hash is right: it was written by this file
  if (hash !== hashOf(result)) throw refuse('one that was changed after it was written');
  if (!Array.isArray(overrides)) throw refuse('overrides that are no list');
  return { result, overrides: overrides as readonly GateOverride[] }; // they are shown and added to, not relied on
}

function hashOf(result: GateResult): string {
  // true: that is what JSON.parse makes
  return contentId(JSON.parse(JSON.stringify(result)) as JsonValue);
}

export interface CheckGateOptions<P extends Problem> {
  /** Of `loopwright grader test`; usually `grader-gate.json` beside the task. */
  readonly file: string;
  /** Grades the cases once more, and refuses a result of other cases or of another grader. Give the options that the test had. */
  readonly task?: Task<P>;
  /** Why the run may begin although the grader fails or has changed: ten characters or more. It is added to the file, with the time. */
  readonly override?: string;
  /** Milliseconds since 1970; default the system's clock. */
  readonly now?: () => number;
  readonly signal?: AbortSignal;
}

/**
 * Lets a run begin, or refuses it, by the result on disk.
 *
 * @returns how it was let in, to be kept with the run
 * @throws `grader_gate_failed` for a result that failed or is out of date, without `override`; as {@link readGate}
 * @example
 * const gate = await checkGate({ file: 'grader-gate.json', task });
 */
export async function checkGate<P extends Problem>({
  file,
  task,
  override,
  now = Date.now,
  signal,
}: CheckGateOptions<P>): Promise<GateDecision> {
  if (override !== undefined) checkReason(override);
  const { result, overrides } = await readGate(file);
  const current = task === undefined ? result : await upToDate(result, task, signal);
  const decision = requireGate(override === undefined ? current : { result: current, override });
  if (decision.outcome === 'overridden')
    await write(file, {
      result,
      overrides: [...overrides, { reason: decision.reason, at: new Date(now()).toISOString() }],
    });
  return decision;
}

/** A grader that ends the process would let the program end as if all were done: before its run began, with exit code 0. */
async function untilTested<T>(test: () => Promise<T>): Promise<T> {
  const onExit = (code: number): void => {
    if (code !== 0) return;
    writeSync(
      2,
      'The program ended while its grader was tested, before the run began: no grader may call process.exit.\n',
    );
    process.exitCode = 1;
  };
  process.on('exit', onExit);
  try {
    return await test();
  } finally {
    process.off('exit', onExit);
  }
}

/** The result or, where cases or grader are others by now, one that fails and says so. */
async function upToDate<P extends Problem>(
  kept: GateResult,
  task: Task<P>,
  signal: AbortSignal | undefined,
): Promise<GateResult> {
  const { repeats: _, ...settings } = kept.settings;
  const { result } = await untilTested(() =>
    testGrader(task, {
      ...settings,
      make: kept.making !== undefined,
      repeats: 1,
      ...(signal === undefined ? {} : { signal }),
    }),
  );
  const changed = [
    result.casesHash === kept.casesHash ? [] : ['its cases'],
    result.casesHash !== kept.casesHash || result.outcomesHash === kept.outcomesHash ? [] : ['what it says of them'],
  ].flat();
  if (changed.length === 0) return kept;
  return {
    ...kept,
    outcome: 'fail',
    findings: [
      {
        name: 'grader/changed',
        level: 'stop',
        seen: `since the test, ${changed.join(' and ')} changed`,
        remedy: 'run loopwright grader test again',
      },
      ...kept.findings,
    ],
  };
}
