/** Who has looked at the samples of a run, when, and what was seen. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { complaint } from '@loopwright/protocol';
import * as z from 'zod';
import { JsonlFile, readJsonl } from './jsonl-file.js';
import { readRecord } from './run-record.js';
import type { RunSample } from './run-samples.js';

export const signOffsName = 'sign-offs.jsonl';

const signOff = z.object({
  name: z.string(),
  /** What they say of it; empty where nothing. */
  note: z.string(),
  at: z.iso.datetime(),
  /** Of the run. */
  run: z.string(),
  seen: z.object({
    /** Answers that were shown. */
    samples: z.number().int().min(0),
    problems: z.number().int().min(0),
    /** Steps of which there were answers, ascending. */
    steps: z.array(z.number().int().min(0)),
    /** Whether each answer and its question were shown from beginning to end; absent where that isn't known. */
    whole: z.boolean().optional(),
    /** SHA-256 of the answers as they are stored, a line each, in the order in which they were shown. */
    sha256: z.string(),
  }),
});

/** A person's word that they looked at samples of a run. */
export type SignOff = Readonly<z.infer<typeof signOff>>;

const limits = { name: 200, note: 2000 } as const;

export interface SignOffOptions {
  readonly name: string;
  readonly note?: string;
  /** What was shown. */
  readonly seen: readonly RunSample[];
  /** Whether each was shown from beginning to end; absent: not known. */
  readonly isWhole?: boolean;
  /** Milliseconds since 1970; default the system's clock. */
  readonly now?: () => number;
}

/**
 * Adds a sign-off to `sign-offs.jsonl` of a run folder; earlier ones stay.
 *
 * @throws `invalid_argument` for a name that is empty or too long, or when nothing was seen; `not_found` where there is no run; write errors
 */
export async function addSignOff(
  folder: string,
  { name, note = '', seen, isWhole, now = Date.now }: SignOffOptions,
): Promise<SignOff> {
  if (name.trim() === '' || name.length > limits.name)
    throw complaint({
      field: 'name',
      expected: `a name of 1 to ${limits.name} characters`,
      got: `${name.length} characters`,
    });
  if (note.length > limits.note)
    throw complaint({
      field: 'note',
      expected: `at most ${limits.note} characters`,
      got: `${note.length} characters`,
    });
  if (seen.length === 0)
    throw complaint({
      field: 'seen',
      expected: 'samples that were shown',
      got: 'none',
      remedy: 'keep samples in the run',
    });
  const { id } = await readRecord(folder);
  const hash = createHash('sha256');
  for (const sample of seen) hash.update(`${JSON.stringify(sample)}\n`);
  const said: SignOff = {
    ...{ name: name.trim(), note, at: new Date(now()).toISOString(), run: id },
    seen: {
      samples: seen.length,
      problems: new Set(seen.map(({ problem }) => problem)).size,
      steps: [...new Set(seen.map(({ step }) => step))].sort((a, b) => a - b),
      ...(isWhole === undefined ? {} : { whole: isWhole }),
      sha256: hash.digest('hex'),
    },
  };
  await using file = await JsonlFile.open(join(folder, signOffsName));
  await file.append([said]);
  return said;
}

/** In order. Lines that can't be read are left out. */
export async function readSignOffs(folder: string): Promise<SignOff[]> {
  const found: SignOff[] = [];
  for await (const line of readJsonl(join(folder, signOffsName))) {
    const said = 'value' in line ? checkSignOff(line.value) : undefined;
    if (said !== undefined) found.push(said);
  }
  return found;
}

/** @returns undefined for a line that can't be read */
export function checkSignOff(value: unknown): SignOff | undefined {
  return signOff.safeParse(value).data;
}
