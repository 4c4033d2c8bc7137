/**
 * A session that waits on the disk. Its file is opened and then loses its name, so that it goes with the engine however that ends,
 * and no engine can take or remove another's.
 */
import { randomUUID } from 'node:crypto';
import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { SessionSpec, TrainingSpec } from '@loopwright/protocol';
import type { ExecutionPlan } from '../engine.js';
import type { SafetensorsFile } from '../formats/safetensors.js';
import { openSessionSnapshot, readOpenSnapshot } from '../formats/session-snapshot.js';
import type { BaseModel } from './base-model.js';
import { snapshotSession } from './session-snapshots.js';
import { stateFromTensors } from './train/session-state.js';
import { TrainingSession } from './train/training-session.js';

export class SwappedSession implements AsyncDisposable {
  /** What is trained, for the count of memory that it needs when it comes back. */
  readonly training: TrainingSpec;
  readonly sizeBytes: number;
  readonly #spec: SessionSpec;
  readonly #plan: ExecutionPlan;
  readonly #file: SafetensorsFile;

  private constructor({ spec, created, plan }: TrainingSession, file: SafetensorsFile, sizeBytes: number) {
    this.training = spec.training;
    this.sizeBytes = sizeBytes;
    this.#spec = created;
    this.#plan = plan;
    this.#file = file;
  }

  /** Writes a session that nobody changes meanwhile. @throws `disk_full`, `cancelled`; no file is left behind then */
  static async write(
    session: TrainingSession,
    { directory, signal }: { readonly directory: string; readonly signal: AbortSignal },
  ): Promise<SwappedSession> {
    const place = path.join(directory, randomUUID());
    try {
      const { sizeBytes } = await snapshotSession(session, { directory: place, metadata: '', signal });
      return new SwappedSession(session, await openSessionSnapshot(place), sizeBytes);
    } finally {
      // Systems that keep the names of open files leave it until an engine starts and cleans up.
      await rm(place, { recursive: true, force: true }).catch(() => undefined);
    }
  }

  /** The session as it was. @throws `model_invalid` for a file that was damaged meanwhile */
  async read(base: BaseModel): Promise<TrainingSession> {
    const [spec, plan] = [this.#spec, this.#plan];
    const { facts, tensors } = await readOpenSnapshot(this.#file, { origin: { spec, plan } });
    return new TrainingSession(base, spec, { plan, state: stateFromTensors(facts, tensors) });
  }

  /** Gives the disk space back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file[Symbol.asyncDispose]();
  }
}

/** Files with names are there only while they are written: one that is older was left by an engine that was killed. */
const abandonedAfterMs = 60 * 60 * 1000;

/** Removes what engines that were killed left in the folder of swapped sessions. */
export async function removeSwapLeftovers(directory: string, now: () => number = Date.now): Promise<void> {
  for (const name of await readdir(directory).catch(() => [])) {
    const place = path.join(directory, name);
    const modifiedAtMs = (await stat(place).catch(() => undefined))?.mtimeMs ?? Number.POSITIVE_INFINITY;
    // What can't be removed costs disk space alone.
    if (now() - modifiedAtMs > abandonedAfterMs)
      await rm(place, { recursive: true, force: true }).catch(() => undefined);
  }
}
