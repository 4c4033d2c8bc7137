/** What is kept of a run besides its steps: `run.json`. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { complaint } from '@loopwright/protocol';
import * as z from 'zod';
import type { JsonValue } from '../data/row.js';
import { writeTextAtomically } from './atomic-file.js';
import { systemCode } from './write-error.js';

/** `running` without a living writer is a run that was killed: see `readRun`. */
export const runStatuses = ['running', 'done', 'interrupted', 'failed'] as const;
export type RunStatus = (typeof runStatuses)[number];

const count = z.number().int().min(0);
export const runUsage = z.strictObject({
  baseModel: z.string(),
  prefillTokens: count,
  sampleTokens: count,
  trainingTokens: count,
});

/** Tokens of a base model that a run used. */
export type RunUsage = Readonly<z.infer<typeof runUsage>>;

const time = z.iso.datetime();
export const json: z.ZodType<JsonValue> = z.json();

const gateAt = { at: time, step: count, casesHash: z.string() };
const passedGate = z.object({ ...gateAt, outcome: z.literal('passed') });
/** The reason as it was given, and the names of the findings that said stop. */
const overriddenGate = z.object({
  ...gateAt,
  outcome: z.literal('overridden'),
  reason: z.string(),
  findings: z.array(z.string()).readonly(),
});

const runRecord = z.object({
  /** Of this file. */
  format: z.literal(1),
  id: z.string().min(1),
  name: z.string(),
  status: z.enum(runStatuses),
  startedAt: time,
  /** Absent while it runs. */
  endedAt: time.optional(),
  /** Why it failed. Messages of foreign errors may hold content, so of those only the class is kept. */
  error: z.object({ code: z.string(), message: z.string() }).optional(),
  /** The complete settings, every default filled in. */
  config: json,
  seeds: z.record(z.string(), z.number()),
  data: z.record(z.string(), z.object({ rows: count.optional(), sha256: z.string() })),
  versions: z.object({ node: z.string(), platform: z.string(), packages: z.record(z.string(), z.string()) }),
  /** Of the program, where it lies in a git repository. */
  source: z.object({ commit: z.string(), dirty: z.boolean() }).nullable(),
  /** The task's name, where the run was told of it. */
  task: z.string().optional(),
  /** Which version of the task's grader judged, where the run was told of its module. */
  grader: z.object({ sha256: z.string(), modules: count }).optional(),
  /** How the gate of the grader let the run begin, and go on where that was another: at which step it was asked. */
  graderGates: z.array(z.discriminatedUnion('outcome', [passedGate, overriddenGate])).optional(),
  /** What to run again; secrets are taken out. */
  command: z.object({ cwd: z.string(), argv: z.array(z.string()) }),
  /** Id of the run that this one repeats. */
  repeatOf: z.string().optional(),
  /** The training session, and where: the URL of its server, or the data directory of the one in its own process. */
  session: z.object({ name: z.string(), place: z.string() }).optional(),
  /** Each time that it went on, with which command, and in what settings that was other than before. */
  resumed: z
    .array(
      z.object({
        at: time,
        afterStep: count,
        changed: z.array(z.string()).optional(),
        command: z.object({ cwd: z.string(), argv: z.array(z.string()) }).optional(),
      }),
    )
    .optional(),
  usage: z.array(runUsage).optional(),
  cost: z.object({ currency: z.string(), total: z.number(), unpriced: z.array(z.string()) }).optional(),
  /** What other trackers call this run, by the name of the tracker. */
  trackers: z
    .record(
      z.string(),
      z.object({
        reference: z.string().optional(),
        link: z.string().optional(),
        sent: count,
        lost: count,
        problem: z.string().optional(),
      }),
    )
    .optional(),
});

/** What is kept of a run besides its steps. */
export type RunRecord = Readonly<z.infer<typeof runRecord>>;

export const recordName = 'run.json';

/** @throws write errors; the older record stays then */
export function writeRecord(folder: string, record: RunRecord): Promise<void> {
  return writeTextAtomically(join(folder, recordName), `${JSON.stringify(record, null, 2)}\n`);
}

/** @throws `not_found` where there is none; `data_invalid` where it is damaged, or of a later version */
export async function readRecord(folder: string): Promise<RunRecord> {
  const path = join(folder, recordName);
  const damaged = (got: string, cause: unknown): Error =>
    complaint({
      code: 'data_invalid',
      field: path,
      expected: 'the record of a run, as openRun writes it',
      got,
      remedy: 'read it with the version of loopwright that wrote it, or restore it from a copy',
      cause,
    });
  let value: unknown;
  try {
    value = JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) throw damaged('a file that is no JSON', error);
    throw complaint({
      code: 'not_found',
      field: folder,
      expected: `a run folder, with ${recordName} in it`,
      got: systemCode(error) === 'ENOENT' || systemCode(error) === 'ENOTDIR' ? 'none' : 'one that can’t be read',
      remedy: 'list runs with `loopwright runs DIR`',
      cause: error,
    });
  }
  const { data, error } = runRecord.safeParse(value);
  if (data !== undefined) return data;
  const [issue] = error.issues;
  throw damaged(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'another value'}`, error);
}
