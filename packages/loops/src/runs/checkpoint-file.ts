/** Where a run can be gone on with: `checkpoint.json` in its folder, which names states that a server holds. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { complaint } from '@loopwright/protocol';
import * as z from 'zod';
import { writeTextAtomically } from './atomic-file.js';
import { json, runUsage } from './run-record.js';
import { systemCode } from './write-error.js';

const count = z.number().int().min(0);

const checkpoint = z.object({
  /** After which it was saved. */
  step: count,
  /** The saved version with weights and optimizer state. */
  modelPackageArn: z.string().min(1),
  savedAt: z.iso.datetime(),
  /** The kind of loop, and what that has to know besides the step. */
  loop: z.string(),
  state: json,
  /** Tokens up to this step: what came after it is not part of the run. */
  usage: z.array(runUsage).optional(),
});

/** A place where a run can be gone on with. */
export type Checkpoint = Readonly<z.infer<typeof checkpoint>>;

const checkpointFile = z.object({
  /** Of this file. */
  format: z.literal(1),
  /** Newest first. */
  checkpoints: z.array(checkpoint),
  /** Saved versions that belong to no checkpoint any more, and are not known to be deleted. */
  discarded: z.array(z.string()),
});

export type CheckpointFile = Readonly<z.infer<typeof checkpointFile>>;

export const checkpointName = 'checkpoint.json';

/** @throws write errors; the older file stays then */
export function writeCheckpoints(folder: string, file: CheckpointFile): Promise<void> {
  return writeTextAtomically(join(folder, checkpointName), `${JSON.stringify(file, null, 2)}\n`);
}

/** Without a file there are no checkpoints. @throws `data_invalid` for a damaged one, or one of a later version */
export async function readCheckpoints(folder: string): Promise<CheckpointFile> {
  const path = join(folder, checkpointName);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return { format: 1, checkpoints: [], discarded: [] };
    throw error;
  }
  const { data, error } = checkpointFile.safeParse(parsed(text));
  if (data !== undefined) return data;
  const [issue] = error.issues;
  throw complaint({
    code: 'data_invalid',
    field: path,
    expected: 'checkpoints, as a run writes them',
    got: `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'another value'}`,
    remedy:
      'read it with the version of loopwright that wrote it, restore it from a copy, or delete it to begin the run again',
    cause: error,
  });
}

/** Without checkpoints of later steps, which belong to what is done again. @throws write errors */
export async function dropCheckpointsAfter(folder: string, step: number): Promise<void> {
  const file = await readCheckpoints(folder);
  const later = file.checkpoints.filter((checkpoint) => checkpoint.step > step);
  if (later.length === 0) return;
  await writeCheckpoints(folder, {
    ...file,
    checkpoints: file.checkpoints.filter((checkpoint) => checkpoint.step <= step),
    discarded: [...file.discarded, ...later.map(({ modelPackageArn }) => modelPackageArn)],
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
