/**
 * A whole training session as one file: trained arrays, moments, pending gradient, and what it is a state of.
 *
 * A safetensors file, so that other tools can look into it. Its metadata hold the rest as JSON and a digest of both; it gets its
 * name when all of it is on the disk, so that a half-written one is never taken for whole, and the one before stays until then.
 */
import { createHash } from 'node:crypto';
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { complaint, type LoopwrightError, type SessionSpec, type TrainingSpec } from '@loopwright/protocol';
import type { ExecutionPlan, SessionSnapshot } from '../engine.js';
import { fingerprintSlices } from '../local/train/fingerprint.js';
import { asWriteError, removeAbandonedWrites, throwIfCancelled, type WriteOptions } from './atomic-file.js';
import { type NamedTensor, SafetensorsFile, writeSafetensors } from './safetensors.js';

const fileName = 'session.safetensors';
const formatVersion = '1';

/** What a snapshot is a state of: these must be equal where it is restored, but for the session's name. */
export interface SnapshotOrigin {
  readonly spec: SessionSpec;
  readonly plan: ExecutionPlan;
}

/** What a snapshot tells beside its arrays. */
export interface SnapshotFacts extends Pick<SessionSnapshot, 'step' | 'pendingPasses' | 'metadata'> {
  readonly training: TrainingSpec;
  readonly hasTrained: boolean;
}

/**
 * Writes a snapshot into `directory`, made where it is missing; one that lies there is replaced when the new one is whole.
 *
 * @param tensors not to be changed until this resolves
 * @throws `disk_full`, `cancelled`; the snapshot that was there is then untouched
 */
export async function writeSessionSnapshot(
  directory: string,
  { origin, facts, tensors }: { origin: SnapshotOrigin; facts: SnapshotFacts; tensors: readonly NamedTensor[] },
  options: WriteOptions = {},
): Promise<SessionSnapshot> {
  const path = join(directory, fileName);
  const description = JSON.stringify({ ...sameOrigin(origin), ...facts });
  const digest = await digestOf(description, tensors, options.signal);
  try {
    await mkdir(directory, { recursive: true });
    await removeAbandonedWrites(directory, { prefix: fileName });
  } catch (error) {
    throw asWriteError(error, directory);
  }
  const metadata = { loopwright_session_snapshot: formatVersion, description, digest };
  await writeSafetensors(path, tensors, { ...options, metadata });
  return toSnapshot(facts, (await stat(path)).size);
}

/**
 * Reads a snapshot whole and checks it.
 *
 * @returns its facts and arrays, in the order in which they were written
 * @throws `unknown_version` where there is none; `model_invalid` for a file that is cut or damaged; `checkpoint_mismatch` for one of
 *   another format version, or of a session that was made from other things than `origin`
 */
export async function readSessionSnapshot(directory: string, options: ReadSnapshotOptions): Promise<ReadSnapshot> {
  await using file = await openSessionSnapshot(
    directory,
    options.signal === undefined ? {} : { signal: options.signal },
  );
  return await readOpenSnapshot(file, options);
}

export interface ReadSnapshotOptions {
  readonly origin: SnapshotOrigin;
  readonly signal?: AbortSignal;
}

export interface ReadSnapshot {
  readonly facts: SnapshotFacts;
  readonly tensors: Map<string, Float32Array>;
  readonly sizeBytes: number;
}

/** {@link readSessionSnapshot} of a file that is open already. */
export async function readOpenSnapshot(
  file: SafetensorsFile,
  { origin, signal }: ReadSnapshotOptions,
): Promise<ReadSnapshot> {
  const { description, facts, digest } = describedBy(file);
  requireOrigin(description, origin);
  const tensors = await file.readAllFloat32(signal === undefined ? {} : { signal });
  const arrays = [...tensors].map(([name, data]) => ({ name, data }));
  if ((await digestOf(file.metadata.description ?? '', arrays, signal)) !== digest)
    throw damaged('digest', 'that of what the file holds', 'another');
  return { facts, tensors, sizeBytes: file.sizeBytes };
}

/**
 * What the snapshot in a directory stands for, from its header alone: its arrays are checked when it is restored.
 *
 * @throws as `restore` of Engine does for files that are missing, cut or of another format version
 */
export async function readSnapshotInfo(directory: string): Promise<SessionSnapshot> {
  await using file = await openSessionSnapshot(directory);
  return toSnapshot(describedBy(file).facts, file.sizeBytes);
}

function toSnapshot({ step, pendingPasses, metadata }: SnapshotFacts, sizeBytes: number): SessionSnapshot {
  return { step, pendingPasses, metadata, sizeBytes };
}

/** The file of a snapshot, its header read. @throws `unknown_version` where there is none, `model_invalid` */
export async function openSessionSnapshot(
  directory: string,
  options: { readonly signal?: AbortSignal } = {},
): Promise<SafetensorsFile> {
  const path = join(directory, fileName);
  if ((await stat(path).catch(() => undefined)) === undefined) {
    throw complaint({
      code: 'unknown_version',
      field: 'directory',
      expected: `a snapshot (${fileName})`,
      got: 'none',
      remedy: 'make the session anew from its operations',
    });
  }
  return SafetensorsFile.open(path, options);
}

interface Description {
  readonly description: Readonly<Record<string, unknown>>;
  readonly facts: SnapshotFacts;
  readonly digest: string;
}

function describedBy({ metadata }: SafetensorsFile): Description {
  const version = metadata.loopwright_session_snapshot;
  if (version !== formatVersion) {
    throw complaint({
      code: 'checkpoint_mismatch',
      field: 'loopwright_session_snapshot',
      expected: `format version ${formatVersion}`,
      got: version === undefined ? 'a file of another kind' : JSON.stringify(version.slice(0, 20)),
      remedy: 'restore a snapshot that this release wrote',
    });
  }
  let description: unknown;
  try {
    description = JSON.parse(metadata.description ?? '');
  } catch {
    throw damaged('description', 'JSON', 'text that is not JSON');
  }
  if (!isRecord(description)) throw damaged('description', 'an object', typeof description);
  const { step, pendingPasses, hasTrained, metadata: given, training } = description;
  if (!isCount(step)) throw damaged('step', 'a count', typeof step);
  if (!isCount(pendingPasses)) throw damaged('pendingPasses', 'a count', typeof pendingPasses);
  if (typeof hasTrained !== 'boolean') throw damaged('hasTrained', 'true or false', typeof hasTrained);
  if (typeof given !== 'string') throw damaged('metadata', 'a text', typeof given);
  if (!isRecord(training)) throw damaged('training', 'an object', typeof training);
  const facts = {
    step,
    pendingPasses,
    hasTrained,
    metadata: given,
    training: training as unknown as TrainingSpec, // Whoever restores it checks it; a changed one fails the digest.
  };
  return { description, facts, digest: metadata.digest ?? '' };
}

/** Of what decides the bits of a session: everything but its name. */
function sameOrigin({ spec: { name: _, ...spec }, plan }: SnapshotOrigin): Record<'spec' | 'plan', unknown> {
  return { spec, plan };
}

function requireOrigin(description: Readonly<Record<string, unknown>>, origin: SnapshotOrigin): void {
  for (const [group, own] of Object.entries(sameOrigin(origin))) {
    const [expected, got] = [record(own), record(description[group])];
    const different = [...Object.keys(expected), ...Object.keys(got)].find(
      (key) => canonical(expected[key]) !== canonical(got[key]),
    );
    if (different === undefined) continue;
    throw complaint({
      code: 'checkpoint_mismatch',
      field: `${group}.${different.slice(0, 40)}`,
      expected: canonical(expected[different]).slice(0, 200),
      got: canonical(got[different]).slice(0, 200),
      remedy: 'restore it into a session made from the same spec and plan',
    });
  }
}

/** Equal for equal values, whatever the order of their keys. */
function canonical(value: unknown): string {
  const sorted = (_: string, item: unknown) =>
    isRecord(item) ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1))) : item;
  return JSON.stringify(value, sorted) ?? 'nothing';
}

/** Of the description and every bit of the arrays; between its slices, other work goes on. */
async function digestOf(
  description: string,
  tensors: readonly Pick<NamedTensor, 'name' | 'data'>[],
  signal: AbortSignal | undefined,
): Promise<string> {
  const slices = fingerprintSlices(tensors.map(({ name, data }) => ({ name, values: data })));
  for (;;) {
    throwIfCancelled(signal, fileName);
    const next = slices.next();
    if (next.done === true) return createHash('sha256').update(description).update(next.value).digest('hex');
    await nextTurn();
  }
}

function damaged(field: string, expected: string, got: string): LoopwrightError {
  return complaint({
    code: 'model_invalid',
    field: `${fileName}: ${field}`,
    expected,
    got,
    remedy: 'restore another snapshot, or make the session anew from its operations',
  });
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
