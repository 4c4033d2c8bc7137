/** Checkpoints of a loop in a run folder: first the state with its server, then the record of it here, then the older ones go. */
import type { Checkpoints, LoopPosition } from '../training/checkpoints.js';
import { wholeNumber } from '../training/options.js';
import { readCheckpoints, writeCheckpoints } from './checkpoint-file.js';
import type { Run } from './run.js';

/** Saves weights and optimizer state as a version. A `TrainingClient` does. */
export interface StateSaver {
  saveState(options: { readonly description: string; readonly signal: AbortSignal }): PromiseLike<{
    readonly modelPackageArn: string;
  }>;
}

export interface RunCheckpointsOptions {
  /** A training client; when the run is resumed, one with the state of `run.checkpoint`. */
  readonly training: StateSaver;
  /** Steps from one checkpoint to the next; default 10. */
  readonly every?: number;
  /** Checkpoints that are kept; default 2. */
  readonly keep?: number;
  /** Deletes a saved state that is kept no longer, such as `(arn) => service.deleteModelPackage(arn)`; by default they stay. */
  readonly deleteState?: (modelPackageArn: string) => Promise<unknown>;
  /** For a run that goes on: the states that its session saved as checkpoints. Those that a kill left without a record are deleted as old ones are. */
  readonly listStates?: () => Promise<readonly string[]>;
  /** How to go on, for the error of an abort. */
  readonly goOn?: string;
  /** Milliseconds since 1970; default the system's clock. */
  readonly now?: () => number;
}

/**
 * What a loop's `checkpoints` option takes. A checkpoint is recorded when its state is saved, so one that is half made is never gone on with: a state
 * that a kill left without a record only takes room, until the run goes on.
 *
 * @throws `invalid_argument`, `data_invalid`
 */
export async function runCheckpoints(
  run: Run,
  { training, every = 10, keep = 2, deleteState, listStates, goOn, now = Date.now }: RunCheckpointsOptions,
): Promise<Checkpoints> {
  wholeNumber('checkpointEvery', every, 1);
  wholeNumber('keepCheckpoints', keep, 1);
  const { checkpoint: resumed } = run;
  let file = await readCheckpoints(run.folder);
  if (listStates !== undefined) {
    const saved = (await run.attempt('states without a record', listStates)) ?? [];
    const known = new Set([...file.checkpoints.map(({ modelPackageArn }) => modelPackageArn), ...file.discarded]);
    const unrecorded = saved.filter((arn) => !known.has(arn));
    file = { ...file, discarded: [...file.discarded, ...unrecorded] };
    if (unrecorded.length > 0) await writeCheckpoints(run.folder, file); // its session is known until it goes on
  }

  /** What is not deleted now is tried again after the next checkpoint. */
  const deleteDiscarded = async (): Promise<void> => {
    if (deleteState === undefined) return;
    const left: string[] = [];
    for (const arn of file.discarded) {
      // A session began with this one: its server may want to load it again.
      const isNeeded = arn === resumed?.modelPackageArn;
      const isGone = !isNeeded && (await run.attempt('an old checkpoint', () => deleteState(arn).then(() => true)));
      if (isGone !== true) left.push(arn);
    }
    file = { ...file, discarded: left };
  };

  return {
    every,
    resumed: resumed && { loop: resumed.loop, step: resumed.step, state: resumed.state },
    async save({ loop, step, state }: LoopPosition, { signal }): Promise<void> {
      const description = `${checkpointDescription(run.id)}${step}`;
      const { modelPackageArn } = await training.saveState({ description, signal });
      const savedAt = new Date(now()).toISOString();
      const usage = run.usage === undefined ? {} : { usage: [...run.usage] };
      const checkpoints = [{ step, modelPackageArn, savedAt, loop, state, ...usage }, ...file.checkpoints];
      const old = checkpoints.slice(keep).map((each) => each.modelPackageArn);
      file = { ...file, checkpoints: checkpoints.slice(0, keep), discarded: [...file.discarded, ...old] };
      await writeCheckpoints(run.folder, file);
      await deleteDiscarded();
    },
    note: () => {
      const [newest] = file.checkpoints;
      const place = newest === undefined ? 'no checkpoint yet' : `checkpoint after step ${newest.step}`;
      return goOn === undefined ? place : `${place}; go on with: ${goOn}`;
    },
  };
}

/** How the states of a run are described, before the step. */
export function checkpointDescription(runId: string): string {
  return `checkpoint of run ${runId} after step `;
}
