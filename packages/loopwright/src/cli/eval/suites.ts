/** Regression suites: tasks, and commands, whose pass rate must not fall. */
import {
  compareModels,
  comparePairs,
  counted,
  type PairedComparison,
  type Problem,
  readProblems,
  type Task,
} from '@loopwright/loops';
import { complaint } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import { loadTask } from '../task-module.js';
import type { EvaluatedModel } from './models.js';
import { shellCommand } from './shell-command.js';

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
  /** Problems that were left out because an answer to them could not be judged. */
  readonly unjudged: number;
  /** Lines that a command wrote which are no cases. */
  readonly otherLines: number;
}

export interface SuiteOptions {
  readonly start: EvaluatedModel;
  readonly candidate: EvaluatedModel;
  readonly signal: AbortSignal;
}

export interface TaskSuiteOptions extends SuiteOptions {
  readonly tokenizer: Tokenizer;
  readonly onProgress: (done: number, of: number) => void;
}

/** A task and the problems of it that are answered. */
export interface RegressionTask {
  readonly task: Task;
  readonly problems: readonly Problem[];
}

/** The held-out problems of a task or, without these, those that it lists to train on. */
export async function loadRegressionTask(path: string): Promise<RegressionTask> {
  const { task } = await loadTask(path);
  const source = task.heldOut ?? task.train;
  if (source === undefined)
    throw complaint({
      field: 'regression',
      expected: 'a task with heldOut or train problems',
      got: 'one without',
      remedy: 'defineTask({ …, heldOut })',
    });
  return { task, problems: await readProblems(source) };
}

export async function taskSuite(
  { task, problems }: RegressionTask,
  { start, candidate, tokenizer, signal, onProgress }: TaskSuiteOptions,
): Promise<Suite> {
  const { right, unjudged } = await compareModels({
    ...{ environment: task.environment, problems, tokenizer, signal, timed: 0, onProgress },
    ...{ start: start.sampler, candidate: candidate.sampler },
    ...(task.settings === undefined ? {} : { settings: task.settings }),
  });
  return { name: task.name, label: task.name, comparison: right, unjudged, otherLines: 0 };
}

/** That a command may write. */
const maxBytes = 64 * 1024 * 1024;

/** Between two tellings of how far a command is. */
const tellEveryMs = 1000;

export interface CommandSuiteOptions extends SuiteOptions {
  readonly reach: ServerReach;
  readonly label: string;
  /** Of one of its two runs. */
  readonly timeoutMs: number;
  /** Once a second. `cases`: lines that are one, so far. */
  readonly onProgress: (role: EvalRole, cases: number, seconds: number) => void;
}

type EvalRole = 'start' | 'candidate';

/**
 * Runs a command for each of the models, which it finds in LOOPWRIGHT_EVAL_MODEL (an ARN, or the id of a base model) at LOOPWRIGHT_URL. It writes a JSON
 * line for each case: `{"id": "…", "pass": true}`.
 *
 * @throws `invalid_argument` when it fails, takes too long, or the two have other cases
 */
export async function commandSuite(
  command: string,
  { start, candidate, label, ...shared }: CommandSuiteOptions,
): Promise<Suite> {
  const { cases: before, otherLines } = await casesOf(command, { ...shared, model: start, role: 'start' });
  const { cases: after, otherLines: more } = await casesOf(command, { ...shared, model: candidate, role: 'candidate' });
  const missing = [...before.keys()].filter((id) => !after.has(id)).length;
  const added = [...after.keys()].filter((id) => !before.has(id)).length;
  if (missing + added > 0 || before.size < 2)
    throw complaint({
      field: 'regression-command',
      expected: 'two cases or more, the same for both models',
      got: `${before.size} and ${after.size}, of which ${missing + added} are only in one`,
      remedy: 'write a line {"id": "…", "pass": true} for every case, whichever model it is',
    });
  const value = (pass: boolean | undefined): number => (pass === true ? 1 : 0);
  const ids = [...before.keys()];
  const comparison = comparePairs(
    ids.map((id) => value(before.get(id))),
    ids.map((id) => value(after.get(id))),
  );
  return {
    name: command.length > 60 ? `${command.slice(0, 59)}…` : command,
    label,
    comparison,
    unjudged: 0,
    otherLines: otherLines + more,
  };
}

interface CaseRun extends Pick<CommandSuiteOptions, 'reach' | 'signal' | 'timeoutMs' | 'onProgress'> {
  readonly model: EvaluatedModel;
  readonly role: EvalRole;
}

interface Cases {
  /** By their ids: whether each passed. */
  readonly cases: ReadonlyMap<string, boolean>;
  readonly otherLines: number;
}

async function casesOf(command: string, run: CaseRun): Promise<Cases> {
  const { model, role, reach, signal, timeoutMs, onProgress } = run;
  const env = {
    ...process.env,
    LOOPWRIGHT_URL: reach.url,
    ...(reach.apiKey === undefined ? {} : { LOOPWRIGHT_API_KEY: reach.apiKey }),
    LOOPWRIGHT_EVAL_MODEL: model.id,
    LOOPWRIGHT_EVAL_ROLE: role,
  };
  let stdout = '';
  const begunMs = performance.now();
  const telling = setInterval(() => {
    const lines = stdout.split('\n').filter(isCase).length;
    onProgress(role, lines, Math.round((performance.now() - begunMs) / 1000));
  }, tellEveryMs);
  const onOutput = (text: string): void => {
    stdout += text;
  };
  const end = await shellCommand(command, { env, signal, timeoutMs, maxBytes, onOutput }).finally(() =>
    clearInterval(telling),
  );
  if ('endedFor' in end)
    throw complaint({
      field: 'regression-command',
      expected:
        end.endedFor === 'time'
          ? `a command that ends within ${timeoutMs / 1000} s`
          : `${maxBytes} bytes of output at most`,
      got: `one that had written ${counted(stdout.split('\n').filter(isCase).length, 'case')} for the ${role} when it was ended`,
      remedy: 'give it more time with --command-timeout, or let it judge and write less',
    });
  if (end.exit !== 0)
    throw complaint({
      field: 'regression-command',
      expected: `a command that ends with code 0 for the ${role}`,
      got: `code ${end.exit}`,
      remedy: 'run it by hand with LOOPWRIGHT_URL and LOOPWRIGHT_EVAL_MODEL set; what it says of itself is above',
    });
  return readCases(stdout);
}

function readCases(stdout: string): Cases {
  const cases = new Map<string, boolean>();
  const lines = stdout.split('\n').filter((line) => line.trim() !== '');
  for (const line of lines.filter(isCase)) {
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
  return { cases, otherLines: lines.length - cases.size };
}

function isCase(line: string): boolean {
  return line.trimStart().startsWith('{');
}

function parsed(line: string): { readonly id?: unknown; readonly pass?: unknown } {
  try {
    return JSON.parse(line) as { readonly id?: unknown; readonly pass?: unknown }; // true: it begins with a brace
  } catch {
    return {};
  }
}
