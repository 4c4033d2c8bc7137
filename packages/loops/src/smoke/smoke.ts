/** The smoke test of a task: every part of a run once, small and quick, before hours are spent on it. */

import { join } from 'node:path';
import type { ServiceClient } from '@loopwright/client';
import { LoopwrightError } from '@loopwright/protocol';
import type { Problem } from '../environments/environment.js';
import { errorText } from '../error-text.js';
import { defineTask } from '../tasks/define-task.js';
import { defaultTaskModel, resolveSettings } from '../tasks/settings.js';
import type { Task } from '../tasks/task.js';
import { withinTime } from '../tasks/within-time.js';
import { wholeNumber } from '../training/options.js';
import { smokeCheckpoint } from './smoke-checkpoint.js';
import { smokeData } from './smoke-data.js';
import { smokeGrader } from './smoke-grader.js';

import { probesOf } from './smoke-probe.js';
import { smokeSampling } from './smoke-sampling.js';
import { smokeSteps } from './smoke-steps.js';
import { smokeTracking } from './smoke-tracking.js';
import {
  SmokeFailure,
  SmokeNeeds,
  type SmokePart,
  type SmokePartName,
  type SmokeProgress,
  type SmokeReport,
} from './smoke-words.js';

export interface SmokeOptions {
  /** With the bundled model. Bits are compared, so its engine has to be deterministic, as on the processor. */
  readonly service: Pick<ServiceClient, 'createLoraTrainingClient' | 'createTrainingClientFromStateWithOptimizer'>;
  /** An empty folder, for the run folder that is written and read. */
  readonly folder: string;
  /** Default 50. */
  readonly prompts?: number;
  /** Default 20. */
  readonly steps?: number;
  /** Default 0. */
  readonly seed?: number;
  /** Called as parts end. */
  readonly onPart?: (part: SmokePart) => void;
  /** Called as a part begins, and on its way. */
  readonly onProgress?: (progress: SmokeProgress) => void;
  readonly signal?: AbortSignal;
  /** Milliseconds; default the performance clock. */
  readonly now?: () => number;
}

/** Of the bundled model. */
const contextLength = 1024;
/** New tokens of an answer at most: what is tried is the machinery, not the model. */
const mostTokens = 32;
/** Of a call of the environment, while no other ends: as the grader gate has it. */
const limitMs = 30_000;

/**
 * Runs the parts of a task one after another: grader, data, sampling, steps, checkpoint and restore, tracking, on the bundled model. A part that fails
 * says why and what to do; those that need what it makes are not run, the others are.
 *
 * @throws `invalid_argument` for a wrong task or option; `cancelled`
 * @example
 * const { outcome, parts } = await smoke(task, { service, folder });
 */
export async function smoke<P extends Problem>(
  given: Task<P>,
  {
    service,
    folder,
    prompts = 50,
    steps = 20,
    seed = 0,
    onPart,
    onProgress = () => {},
    signal,
    now = () => performance.now(),
  }: SmokeOptions,
): Promise<SmokeReport> {
  const { name, settings: set } = defineTask(given);
  wholeNumber('prompts', prompts, 1);
  wholeNumber('steps', steps, 2);
  const task = withinTime(given, { limitMs });
  const resolved = resolveSettings(set);
  const settings = { ...resolved, maxTokens: Math.min(resolved.maxTokens, mostTokens) };
  const parts: SmokePart[] = [];
  const end = (part: SmokePart): void => {
    parts.push(part);
    onPart?.(part);
  };
  /** @returns what the part made; undefined where it failed or could not be run */
  const part = async <T>(
    name: SmokePartName,
    seenOf: (made: T) => string,
    work: () => Promise<T>,
  ): Promise<T | undefined> => {
    const start = now();
    onProgress({ part: name, done: 0 });
    try {
      const made = await work();
      end({ name, status: 'pass', seen: seenOf(made), milliseconds: now() - start });
      return made;
    } catch (error) {
      if (isCancelled(error, signal)) throw error;
      if (error instanceof SmokeNeeds) notRun(name, error.part);
      else end({ name, status: 'fail', milliseconds: now() - start, ...saidOf(error) });
      return undefined;
    }
  };
  const notRun = (name: SmokePartName, needed: SmokePartName): undefined => {
    const remedy = `mend ${needed} first`;
    end({ name, status: 'not-run', seen: `needs ${needed}`, remedy, milliseconds: 0 });
    return undefined;
  };
  const counted = (name: SmokePartName) => (done: number, of: number) => onProgress({ part: name, done, of });
  const own = signal === undefined ? {} : { signal };

  await part(
    'grader',
    (seen: string) => seen,
    () => smokeGrader(task, { limitMs, onProgress: counted('grader'), signal }),
  );
  await using training = await service.createLoraTrainingClient({
    ...{ baseModel: defaultTaskModel, seed, rank: settings.rank },
    ...own,
  });
  const tokenizer = await training.getTokenizer();
  const { maxTokens } = settings;
  const read = { tokenizer, prompts, contextLength, maxTokens, seed, ...own };
  const data = await part(
    'data',
    ({ seen }) => seen,
    () => smokeData(task, read),
  );
  const common = { training, tokenizer, settings, contextLength, seed, ...own };
  const sampled =
    data === undefined
      ? notRun('sampling', 'data')
      : await part(
          'sampling',
          ({ seen }) => seen,
          () => smokeSampling(task, { ...common, problems: data.problems, onProgress: counted('sampling') }),
        );
  if (data === undefined || sampled === undefined) {
    for (const each of ['step', 'checkpoint and restore', 'tracking'] as const)
      notRun(each, data === undefined ? 'data' : 'sampling');
    return { task: name, outcome: 'fail', parts };
  }
  const stepping = { ...common, problems: data.problems, steps, probes: probesOf(sampled.groups) };
  const done = await part(
    'step',
    ({ seen }) => seen,
    () => smokeSteps(task, { ...stepping, onProgress: counted('step') }),
  );
  if (done === undefined) {
    for (const each of ['checkpoint and restore', 'tracking'] as const) notRun(each, 'step');
    return { task: name, outcome: 'fail', parts };
  }
  await part(
    'checkpoint and restore',
    (seen: string) => seen,
    () => smokeCheckpoint(task, { ...stepping, service, done, onProgress: counted('checkpoint and restore') }),
  );
  const tracking = {
    ...{ folder: join(folder, 'run'), config: { task: name, settings, prompts, steps }, seed, tokenizer },
    ...{ problems: data.problems, heldOut: data.heldOut, steps: done.steps },
  };
  await part(
    'tracking',
    (seen: string) => seen,
    () => smokeTracking(tracking),
  );
  return { task: name, outcome: parts.every(({ status }) => status === 'pass') ? 'pass' : 'fail', parts };
}

function isCancelled(error: unknown, signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true && LoopwrightError.isInstance(error) && error.code === 'cancelled';
}

/** What isn't an error of Loopwright is told by its class alone: its message may hold content. `error` is what tells more than `seen`. */
function saidOf(error: unknown): { readonly seen: string; readonly remedy: string; readonly error?: unknown } {
  if (error instanceof SmokeFailure) {
    const { message: seen, remedy, cause } = error;
    return { seen, remedy, ...(cause === undefined ? {} : { error: firstCause(cause) }) };
  }
  if (LoopwrightError.isInstance(error)) {
    const first = firstCause(error);
    const remedies = [first, error].flatMap((each) =>
      LoopwrightError.isInstance(each) && typeof each.details.remedy === 'string' ? [each.details.remedy] : [],
    );
    const remedy = remedies[0] ?? 'mend what the message names';
    const seen = error.message.replace(`; ${remedy}`, '');
    return { seen, remedy, ...(first === error ? {} : { error: first }) };
  }
  return { seen: `it threw (${errorText(error)})`, remedy: 'mend the code of the task that threw', error };
}

/** What began it: the loop says how many failed, and its cause why the first of them did. */
function firstCause(error: unknown): unknown {
  let first = error;
  while (first instanceof Error && first.cause instanceof Error) first = first.cause;
  return first;
}
