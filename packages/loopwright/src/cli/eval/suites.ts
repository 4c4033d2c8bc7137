/** Regression suites: tasks, and commands, whose pass rate must not fall. */
import { execFile } from 'node:child_process';
import { compareModels, comparePairs, type PairedComparison, readProblems } from '@loopwright/loops';
import { complaint } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import { loadTask } from '../task-module.js';
import type { EvaluatedModel } from './models.js';

/** How a request reaches the server of the models. */
export interface ServerReach {
  readonly url: string;
  readonly apiKey: string | undefined;
}

export interface Suite {
  /** As it is shown here. */
  readonly name: string;
  /** As the version keeps it: a command may hold secrets. */
  readonly label: string;
  readonly comparison: PairedComparison;
}

export interface SuiteOptions {
  readonly start: EvaluatedModel;
  readonly candidate: EvaluatedModel;
  readonly signal: AbortSignal;
}

/** The held-out problems of a task or, without these, those that it lists to train on. */
export async function taskSuite(
  path: string,
  { start, candidate, tokenizer, signal }: SuiteOptions & { readonly tokenizer: Tokenizer },
): Promise<Suite> {
  const { task } = await loadTask(path);
  const source = task.heldOut ?? task.train;
  if (source === undefined)
    throw complaint({
      field: 'regression',
      expected: 'a task with heldOut or train problems',
      got: 'one without',
      remedy: 'defineTask({ …, heldOut })',
    });
  const problems = await readProblems(source, { signal });
  const { right } = await compareModels({
    ...{ environment: task.environment, problems, tokenizer, signal, timed: 0 },
    ...{ start: start.sampler, candidate: candidate.sampler },
    ...(task.settings === undefined ? {} : { settings: task.settings }),
  });
  return { name: task.name, label: task.name, comparison: right };
}

/** Hours that a command may take, and bytes that it may write. */
const [timeoutMs, maxOutputBytes] = [6 * 3600 * 1000, 64 * 1024 * 1024];

/**
 * Runs a command for each of the models, which it finds in LOOPWRIGHT_EVAL_MODEL (an ARN, or the id of a base model) at LOOPWRIGHT_URL. It writes a JSON
 * line for each case: `{"id": "…", "pass": true}`.
 *
 * @throws `invalid_argument` when it fails, or the two have other cases
 */
export async function commandSuite(
  command: string,
  { start, candidate, reach, signal, label }: SuiteOptions & { readonly reach: ServerReach; readonly label: string },
): Promise<Suite> {
  const before = await casesOf(command, { model: start, role: 'start', reach, signal });
  const after = await casesOf(command, { model: candidate, role: 'candidate', reach, signal });
  const missing = [...before.keys()].filter((id) => !after.has(id)).length;
  const more = [...after.keys()].filter((id) => !before.has(id)).length;
  if (missing + more > 0 || before.size < 2)
    throw complaint({
      field: 'regression-command',
      expected: 'two cases or more, the same for both models',
      got: `${before.size} and ${after.size}, of which ${missing + more} are only in one`,
      remedy: 'write a line {"id": "…", "pass": true} for every case, whichever model it is',
    });
  const value = (pass: boolean | undefined): number => (pass === true ? 1 : 0);
  const ids = [...before.keys()];
  const comparison = comparePairs(
    ids.map((id) => value(before.get(id))),
    ids.map((id) => value(after.get(id))),
  );
  return { name: command.length > 60 ? `${command.slice(0, 59)}…` : command, label, comparison };
}

interface CaseRun {
  readonly model: EvaluatedModel;
  readonly role: 'start' | 'candidate';
  readonly reach: ServerReach;
  readonly signal: AbortSignal;
}

function casesOf(command: string, { model, role, reach, signal }: CaseRun): Promise<ReadonlyMap<string, boolean>> {
  const env = {
    ...process.env,
    LOOPWRIGHT_URL: reach.url,
    ...(reach.apiKey === undefined ? {} : { LOOPWRIGHT_API_KEY: reach.apiKey }),
    LOOPWRIGHT_EVAL_MODEL: model.id,
    LOOPWRIGHT_EVAL_ROLE: role,
  };
  const [shell, flag] = process.platform === 'win32' ? ['cmd.exe', '/c'] : ['/bin/sh', '-c'];
  const limits = { env, signal, timeout: timeoutMs, maxBuffer: maxOutputBytes };
  return new Promise((resolve, reject) => {
    const child = execFile(shell, [flag, command], limits, (cause, stdout) => {
      try {
        if (signal.aborted) throw signal.reason;
        if (cause !== null)
          throw complaint({
            field: 'regression-command',
            expected: `a command that ends with code 0 for the ${role}`,
            got: `code ${String(cause.code ?? cause.signal)}`,
            remedy: 'run it by hand with LOOPWRIGHT_URL and LOOPWRIGHT_EVAL_MODEL set; what it says of itself is above',
            cause,
          });
        resolve(readCases(stdout));
      } catch (error) {
        reject(error);
      }
    });
    child.stderr?.pipe(process.stderr, { end: false });
  });
}

/** Lines that are no JSON objects are what else it tells. */
function readCases(stdout: string): ReadonlyMap<string, boolean> {
  const cases = new Map<string, boolean>();
  for (const line of stdout.split('\n')) {
    if (!line.trimStart().startsWith('{')) continue;
    const { id, pass } = parsed(line);
    if (typeof id !== 'string' || typeof pass !== 'boolean' || cases.has(id))
      throw complaint({
        field: 'regression-command',
        expected: 'lines {"id": "…", "pass": true}, each id once',
        got: `another line after ${cases.size} such`,
        remedy: 'write what else there is to tell to standard error',
      });
    cases.set(id, pass);
  }
  return cases;
}

function parsed(line: string): { readonly id?: unknown; readonly pass?: unknown } {
  try {
    return JSON.parse(line) as { readonly id?: unknown; readonly pass?: unknown }; // true: it begins with a brace
  } catch {
    return {};
  }
}
