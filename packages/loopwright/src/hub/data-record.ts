/** What a pull learnt of a commit of a data set, beside its snapshots: its parts, and how large each file is. */
import { mkdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { writeJsonAtomically } from '@loopwright/engine';
import * as z from 'zod';

const recordSchema = z.object({
  parts: z
    .array(
      z.object({
        config: z.string(),
        split: z.string(),
        files: z.array(z.object({ path: z.string(), sizeBytes: z.number().int().nonnegative() })).min(1),
      }),
    )
    .min(1),
});

export type DataRecord = z.infer<typeof recordSchema>;

/** Tools that share the cache look only at folders that they know. */
const recordPath = (folder: string, commit: string): string => join(folder, 'data-layouts', `${commit}.json`);

/** @param folder of the repository */
export async function writeDataRecord(
  folder: string,
  { commit, parts }: DataRecord & { readonly commit: string },
): Promise<void> {
  const path = recordPath(folder, commit);
  await mkdir(dirname(path), { recursive: true });
  await writeJsonAtomically(path, { parts });
}

/** Undefined where no pull has written one. */
export async function readDataRecord(folder: string, commit: string): Promise<DataRecord | undefined> {
  try {
    return recordSchema.parse(JSON.parse(await readFile(recordPath(folder, commit), 'utf8')));
  } catch {
    return undefined; // not there or damaged: the next pull writes it
  }
}
