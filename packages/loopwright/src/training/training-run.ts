/** A run from its server to its end: a training client, a run folder, checkpoints, Ctrl-C, and the same again where it goes on. */
import type { ModelPackageInfo, TrainingClient } from '@loopwright/client';
import type { Checkpoints } from '@loopwright/loops';
import {
  type ChooseCheckpoint,
  checkpointDescription,
  type OpenRunOptions,
  type Run,
  type RunRecord,
  readRun,
  runCheckpoints,
} from '@loopwright/loops/node';
import { LoopwrightError } from '@loopwright/protocol';
import { exitCodes } from '../cli/exit-codes.js';
import { type ConnectOptions, type ServiceConnection, withService } from '../connect.js';
import { listenForInterrupt } from '../interrupt.js';
import { withRun } from '../runs.js';
import { goOnCommand } from './go-on.js';
import { resumeClient } from './resume-client.js';
import { connectionTo, placeOf } from './resume-place.js';

export interface TrainingRunOptions extends Omit<OpenRunOptions, 'resume' | 'resumeAfter' | 'usage'> {
  /** Folder of the run to go on with, such as a program's `--resume` says; without it, a new run begins in `folder`. */
  readonly resume?: string | undefined;
  /** Makes the training client of a run that begins; one that goes on gets a session with the state of its checkpoint. */
  readonly start: (service: ServiceConnection) => Promise<TrainingClient>;
  /** For `connect`; a run that goes on is connected to where it was, unless this or LOOPWRIGHT_URL names another server. */
  readonly connection?: ConnectOptions;
  /** Steps from one checkpoint to the next; default 10. There is one after the last step too. */
  readonly checkpointEvery?: number;
  /** Checkpoints that are kept, the newest; default 2. Older states are deleted. */
  readonly keepCheckpoints?: number;
  /** Ends the run; by default Ctrl-C and SIGTERM do. */
  readonly signal?: AbortSignal;
  /** Told what people should know, a line each; default: it goes to the standard error. */
  readonly onNotice?: (line: string) => void;
}

/** What a loop needs. */
export interface TrainingRun {
  readonly service: ServiceConnection;
  readonly training: TrainingClient;
  readonly run: Run;
  /** For the loop's option of this name. */
  readonly checkpoints: Checkpoints;
  /** For the loop's option of this name. */
  readonly signal: AbortSignal;
  /** Steps that are done already: 0, unless the run goes on. */
  readonly afterStep: number;
}

/**
 * Connects, opens a run folder and runs `body`. It saves checkpoints on the way; Ctrl-C lets a step whose training has begun end, saves, says which command
 * goes on, and sets the exit code to 130; a second one ends the process at once. With `resume` the same program goes on from the newest checkpoint, with the same
 * numbers as if nothing had happened.
 *
 * What `body` does before its loop it does again when the run goes on: `afterStep` says whether it should.
 *
 * @returns what `body` returns; undefined where Ctrl-C ended it
 * @throws what `connect`, `start`, `openRun` and `body` throw; `cancelled` when `signal` ended it; `not_found` when the server has none of its checkpoints
 * @example
 * await withTrainingRun(
 *   {
 *     folder: 'runs/math', resume: values.resume, config: { steps: 30 }, seeds: { seed: 1 },
 *     start: (service) => service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 16, seed: 1 }),
 *   },
 *   ({ training, run, checkpoints, signal }) =>
 *     runGrpo({ training, environment, steps: 30, seed: 1, checkpoints, signal, onStep: run.onStep }),
 * );
 */
export async function withTrainingRun<T>(
  options: TrainingRunOptions,
  body: (parts: TrainingRun) => Promise<T>,
): Promise<T | undefined> {
  const { onNotice = (line) => void process.stderr.write(`${line}\n`) } = options;
  let checkpoints: Checkpoints | undefined;
  const place = (): string => checkpoints?.note?.() ?? 'nothing is saved yet';
  using interrupt = options.signal === undefined ? interruptOf({ onNotice, place }) : undefined;
  const signal = options.signal ?? interrupt?.signal ?? new AbortController().signal;
  try {
    return await open({ ...options, onNotice, signal }, (parts) => {
      checkpoints = parts.checkpoints;
      return body(parts);
    });
  } catch (error) {
    const isCancelled = LoopwrightError.isInstance(error) && error.code === 'cancelled';
    const isInterrupted = isCancelled && interrupt?.signal.aborted === true;
    if (checkpoints !== undefined || isInterrupted)
      onNotice(`${isInterrupted ? 'Interrupted' : 'The run has ended early'}: ${place()}`);
    if (!isInterrupted) throw error;
    process.exitCode = exitCodes.interrupted;
    return undefined;
  }
}

interface InterruptTold {
  readonly onNotice: (line: string) => void;
  readonly place: () => string;
}

function interruptOf({ onNotice, place }: InterruptTold) {
  return listenForInterrupt({
    onInterrupt: () => {
      onNotice(
        'Stopping: a step whose training has begun ends first, then the run is saved. Ctrl-C again ends at once.',
      );
    },
    exit: (code) => {
      onNotice(`Ended at once: ${place()}`);
      process.exit(code);
    },
  });
}

async function open<T>(
  {
    start,
    resume,
    connection = {},
    checkpointEvery,
    keepCheckpoints,
    signal,
    onNotice,
    ...options
  }: TrainingRunOptions & {
    readonly signal: AbortSignal;
    readonly onNotice: (line: string) => void;
  },
  body: (parts: TrainingRun) => Promise<T>,
): Promise<T> {
  const where = resume === undefined ? connection : connectionTo((await readRun(resume)).record.session, connection);
  return withService({ onNotice, ...where }, async (service) => {
    let training = resume === undefined ? await start(service) : undefined;
    let earlier: RunRecord | undefined;
    const choose: ChooseCheckpoint = async (newestFirst, record) => {
      earlier = record;
      const resumed = await resumeClient(newestFirst, { service, record, onNotice, signal });
      training = resumed?.training ?? (await start(service));
      return resumed?.checkpoint;
    };
    const kept = {
      ...{ onWarning: onNotice, ...options, folder: resume ?? options.folder, usage: () => service.usage() },
      ...(resume === undefined ? {} : { resume: choose }),
    };
    return withRun(kept, async (run) => {
      if (training === undefined)
        throw new LoopwrightError({ code: 'internal', message: 'a run without a training client' });
      const session = { name: training.name, place: placeOf(service) };
      await run.attach({ session, tokenizer: await training.getTokenizer() });
      const checkpoints = await runCheckpoints(run, {
        ...{ training, goOn: goOnCommand(run.folder) },
        deleteState: (arn: string) => service.deleteModelPackage(arn),
        listStates: () => checkpointStates(service, earlier),
        ...(checkpointEvery === undefined ? {} : { every: checkpointEvery }),
        ...(keepCheckpoints === undefined ? {} : { keep: keepCheckpoints }),
      });
      if (resume !== undefined) tellOfResume(run, onNotice);
      return body({ service, training, run, checkpoints, signal, afterStep: run.checkpoint?.step ?? 0 });
    });
  });
}

/** Of the newest so many: room that older ones take is lost. */
const statesLooked = 1000;

/**
 * The states that a run saved as checkpoints in the session that its record names. Not those of its other sessions: a copy of its folder may have gone on
 * there.
 */
async function checkpointStates(
  service: ServiceConnection,
  earlier: RunRecord | undefined,
): Promise<readonly string[]> {
  const { id = '', session } = earlier ?? {};
  if (session?.place !== placeOf(service)) return [];
  const states = await service.listModelPackages({ kind: 'state', maxResults: statesLooked });
  const isOwn = ({ sessionName, description }: ModelPackageInfo): boolean =>
    sessionName === session.name && description.startsWith(checkpointDescription(id));
  return states.filter(isOwn).map(({ modelPackageArn }) => modelPackageArn);
}

function tellOfResume({ checkpoint, changes, record }: Run, onNotice: (line: string) => void): void {
  for (const change of changes) onNotice(`Changed: ${change}`);
  onNotice(
    checkpoint === undefined
      ? `${record.name} was stopped before its first checkpoint: it begins again at step 1.`
      : `${record.name} goes on after step ${checkpoint.step}, from the checkpoint of ${checkpoint.savedAt}.`,
  );
}
