/** Runs one session's log again on an engine that knows nothing, and compares what comes with what was recorded. */
import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { CallOptions, Engine, ExecutionPlan, SamplerWeights } from '@loopwright/engine';
import {
  asLoopwrightError,
  type ErrorCode,
  LoopwrightError,
  type Operation,
  type SamplingOperation,
  type TrainingOperation,
  type VersionId,
  type WeightsRef,
} from '@loopwright/protocol';
import type { Manifest } from '../blobs/blob-store.js';
import type { FileBlobStore } from '../blobs/file-blob-store.js';
import type { OperationRecord, SamplingRecord, TrainingRecord } from '../operations/operation-record.js';
import { encodeResult } from '../operations/payload-codec.js';
import { type SessionRecord, trainedSpec } from '../sessions/session-record.js';
import type { AnyResult } from '../usage/ledger.js';
import { differenceOf } from './differences.js';
import { type Finding, type OperationFindings, type OperationRef, outcomeText, refOf } from './findings.js';
import type { KeptRun } from './kept-run.js';
import type { RecordedData } from './recorded-data.js';
import { placeOf, type Turn, timelineOf } from './timeline.js';
import { weightsDifference } from './weights-difference.js';

/** What running an operation again came to. */
export type ReplayedOutcome =
  | { readonly status: 'Completed'; readonly done: AnyResult; readonly files?: Manifest }
  | { readonly status: 'Failed'; readonly code: ErrorCode; readonly error: LoopwrightError };

export interface SessionReplayOptions {
  readonly data: RecordedData;
  readonly session: SessionRecord;
  /** Fresh: without sessions. */
  readonly engine: Engine;
  readonly plan: ExecutionPlan;
  /** For what the replay saves. */
  readonly directory: string;
  readonly blobs: FileBlobStore;
  /** Told of every operation whose turn is over, in their order. */
  readonly onOperation?: (ended: ReplayedOperation) => void;
  /** Takes over what each operation came to; then `blobs` are its own, and what is saved stays in them. */
  readonly kept?: Pick<KeptRun, 'ended'>;
  readonly signal?: AbortSignal;
}

export interface ReplayedOperation extends OperationRef {
  /** Empty where nothing differs. */
  readonly findings: readonly Finding[];
  /** Operations whose turn is over, and all. */
  readonly done: number;
  readonly total: number;
}

/** Counts over one session. */
export interface ReplayCounts {
  /** Run again and compared. */
  compared: number;
  /** Failures and skips that changed nothing (cancelled, out of memory, …), and operations that had not ended. */
  leftOut: number;
  /** Steps whose weights were compared by their fingerprint. */
  fingerprints: number;
  /** Saved versions whose files were compared. */
  versions: number;
  /** Saved versions that expired or were deleted, so that nothing is left to compare with. */
  versionsGone: number;
  /** Versions of other sessions that were read, as they were recorded. */
  foreignVersions: number;
}

/** Sampling operations at once; neighbours change no bits. */
const samplingAtOnce = 64;

export const noCounts: ReplayCounts = {
  compared: 0,
  leftOut: 0,
  fingerprints: 0,
  versions: 0,
  versionsGone: 0,
  foreignVersions: 0,
};

/** Failures that depend on the operation alone: they must come again. Others left no trace, and are left out. */
const repeatable: ReadonlySet<ErrorCode> = new Set([
  'operation_failed',
  'invalid_argument',
  'context_length_exceeded',
  'checkpoint_mismatch',
  'model_invalid',
]);

export class SessionReplay {
  readonly counts: ReplayCounts = { ...noCounts };
  /** Largest |a − b| by field. */
  readonly largest = new Map<string, number>();
  readonly differences: OperationFindings[] = [];
  readonly #options: SessionReplayOptions;
  /** Where the versions that the replay saved lie. */
  readonly #saved = new Map<VersionId, string>();
  readonly #foreign = new Map<VersionId, Promise<string>>();
  #done = 0;
  #total = 0;

  constructor(options: SessionReplayOptions) {
    this.#options = options;
  }

  /** @throws what ends the engine (`engine_failed`, `out_of_memory`, `disk_full`), `cancelled` */
  async run(): Promise<void> {
    const { data, session, engine, plan, signal } = this.#options;
    const records = await data.log.ofSession(session.id);
    this.#total = records.length;
    await engine.createSession(trainedSpec(session), { plan });
    const turns = timelineOf(records);
    for (const [index, turn] of turns.entries()) {
      signal?.throwIfAborted();
      if (turn.training !== undefined) {
        const goesOn = await this.#train(turn, turn.training);
        if (!goesOn) return;
      }
      await this.#sample(turn);
      await this.#forgetVersions(turns.slice(index + 1));
    }
    await engine.closeSession(session.name);
  }

  /** False when what follows can't be replayed. */
  async #train(turn: Turn, record: TrainingRecord): Promise<boolean> {
    const place = placeOf(turn);
    if (record.status === 'Failed' && record.error?.code === 'gradient_incomplete') {
      await this.#options.engine.clearGradient(this.#options.session.name);
      this.#leaveOut(record, place);
      return true;
    }
    if (!mustRun(record)) {
      this.#leaveOut(record, place);
      return true;
    }
    const operation = await this.#read(record);
    if (LoopwrightError.isInstance(operation)) {
      const goesOn = record.type === 'forward' || record.type === 'save-weights' || record.type === 'save-state';
      const findings: Finding[] = [{ type: 'damaged', what: 'inputs', message: operation.message }];
      if (!goesOn) findings.push({ type: 'not-run', message: 'what follows in this session can’t be replayed' });
      this.#report(record, place, findings);
      return goesOn;
    }
    // true: a training record holds a training operation
    const outcome = await this.#attempt(() => this.#runTraining(record, operation as TrainingOperation));
    await this.#end(record, place, outcome);
    return true;
  }

  async #sample(turn: Turn): Promise<void> {
    for (let start = 0; start < turn.sampling.length; start += samplingAtOnce) {
      const some = turn.sampling.slice(start, start + samplingAtOnce);
      const works = some.map(async (record) => {
        if (!mustRun(record)) return undefined;
        const operation = await this.#read(record);
        if (LoopwrightError.isInstance(operation)) return operation;
        // true: a sampling record holds a sampling operation
        return this.#attempt(() => this.#runSampling(operation as SamplingOperation));
      });
      // All are waited for, so that none is left running when one of them ends the replay.
      const outcomes = await Promise.allSettled(works);
      for (const [index, record] of some.entries()) {
        const place = placeOf(turn, start + index);
        const outcome = outcomes[index]!;
        if (outcome.status === 'rejected') throw outcome.reason;
        if (outcome.value === undefined) this.#leaveOut(record, place);
        else if (LoopwrightError.isInstance(outcome.value))
          this.#report(record, place, [{ type: 'damaged', what: 'inputs', message: outcome.value.message }]);
        else await this.#end(record, place, outcome.value);
      }
    }
  }

  async #read(record: OperationRecord): Promise<Operation | LoopwrightError> {
    return this.#options.data.log.operation(record).catch((error: unknown) => asLoopwrightError(error));
  }

  async #attempt(work: () => Promise<ReplayedOutcome>): Promise<ReplayedOutcome> {
    try {
      return await work();
    } catch (cause) {
      const error = asLoopwrightError(cause);
      const isVersionGone = error.code === 'unknown_version';
      if (!repeatable.has(error.code) && !isVersionGone) throw cause;
      return { status: 'Failed', code: error.code, error };
    }
  }

  get #callOptions(): CallOptions {
    const { signal } = this.#options;
    return signal === undefined ? {} : { signal };
  }

  async #runTraining(record: TrainingRecord, operation: TrainingOperation): Promise<ReplayedOutcome> {
    const { engine, session } = this.#options;
    const { name } = session;
    switch (operation.type) {
      case 'forward':
      case 'forward-backward':
        return completed({ type: operation.type, result: await engine.pass(name, operation, this.#callOptions) });
      case 'optim-step':
        return completed({ type: operation.type, result: await engine.optimStep(name, operation.adam) });
      case 'load-state': {
        const directory = await this.#directory(operation.version);
        const { loadOptimizer } = operation;
        await engine.loadState(name, { directory, loadOptimizer, ...this.#callOptions });
        return completed({ type: operation.type, result: {} });
      }
      case 'save-weights':
      case 'save-state':
        return this.#save(record, operation);
      default:
        return operation satisfies never;
    }
  }

  async #save(
    record: TrainingRecord,
    operation: Extract<TrainingOperation, { type: 'save-weights' | 'save-state' }>,
  ): Promise<ReplayedOutcome> {
    const { engine, session, blobs } = this.#options;
    const version = record.resolved.version ?? `replayed/${record.sequenceNumber}`;
    const directory = join(this.#options.directory, String(record.sequenceNumber));
    await mkdir(directory, { recursive: true });
    const { files } =
      operation.type === 'save-state'
        ? await engine.saveState(session.name, { version, directory, ...this.#callOptions })
        : await engine.saveWeights(session.name, { version, directory, merge: operation.merge, ...this.#callOptions });
    this.#saved.set(version, directory);
    const manifest = await blobs.adopt(session.workspaceId, directory, files);
    return { ...completed({ type: operation.type, result: { version } }), files: manifest };
  }

  async #runSampling(operation: SamplingOperation): Promise<ReplayedOutcome> {
    const { engine } = this.#options;
    switch (operation.type) {
      case 'sample': {
        const { type, weights, ...request } = operation;
        const read = await this.#weights(weights);
        return completed({ type, result: await engine.sample({ ...request, weights: read }, this.#callOptions) });
      }
      case 'compute-logprobs': {
        const { type, prompt, weights } = operation;
        const read = await this.#weights(weights);
        const result = await engine.computeLogprobs({ prompt, weights: read }, this.#callOptions);
        return completed({ type, result });
      }
      case 'load-weights': {
        const weights = await this.#weights({ type: 'version', id: operation.version });
        await engine.loadSampler(weights, this.#callOptions);
        return completed({ type: operation.type, result: {} });
      }
      default:
        return operation satisfies never;
    }
  }

  async #weights(ref: WeightsRef): Promise<SamplerWeights> {
    return ref.type === 'base' ? ref : { ...ref, directory: await this.#directory(ref.id) };
  }

  /** A version of this session as the replay made it; one of another session as it was recorded. @throws `unknown_version` */
  async #directory(version: VersionId): Promise<string> {
    const own = this.#saved.get(version);
    if (own !== undefined) return own;
    const { data, session } = this.#options;
    let found = this.#foreign.get(version);
    if (found === undefined) {
      found = data.registry.directory(session.workspaceId, version);
      this.#foreign.set(version, found);
      this.counts.foreignVersions += 1;
    }
    return found;
  }

  /** Removes what the replay saved and nothing behind reads. */
  async #forgetVersions(rest: readonly Turn[]): Promise<void> {
    const needed = new Set(rest.map(({ training }) => training?.readsVersion));
    for (const [version, directory] of this.#saved) {
      if (needed.has(version)) continue;
      this.#saved.delete(version);
      await rm(directory, { recursive: true, force: true });
    }
  }

  async #end(record: OperationRecord, place: string, outcome: ReplayedOutcome): Promise<void> {
    this.counts.compared += 1;
    const findings = await this.#compare(record, outcome);
    const { blobs, kept, session } = this.#options;
    if (kept !== undefined) await kept.ended(record, outcome);
    else {
      // Compared, and so not needed any more: long runs save more than a disk may hold twice.
      for (const { hash } of (outcome.status === 'Completed' && outcome.files) || [])
        await blobs.delete({ workspaceId: session.workspaceId, hash });
    }
    this.#report(record, place, findings);
  }

  async #compare(record: OperationRecord, outcome: ReplayedOutcome): Promise<Finding[]> {
    const recorded = { status: record.status, code: record.error?.code };
    const now = outcome.status === 'Failed' ? { status: 'Failed', code: outcome.code } : { status: 'Completed' };
    const values = [outcomeText(recorded), outcomeText(now)] as const;
    if (values[0] !== values[1]) return [{ type: 'outcome', values }];
    if (outcome.status === 'Failed') return [];
    const findings = await this.#compareResult(record, outcome.done);
    if (outcome.files !== undefined) findings.push(...(await this.#compareFiles(record, outcome.files)));
    return findings;
  }

  async #compareResult(record: OperationRecord, done: AnyResult): Promise<Finding[]> {
    const recorded = await this.#options.data.log.result(record).catch((error: unknown) => asLoopwrightError(error));
    const hash = createHash('sha256').update(encodeResult(done.type, done.result)).digest('hex');
    const isSame = hash === record.resultBlob;
    if (LoopwrightError.isInstance(recorded)) {
      const verdict = isSame ? 'what came now has the recorded hash' : 'what came now has another hash';
      return [{ type: 'damaged', what: 'result', message: `${recorded.message}; ${verdict}` }];
    }
    if (recorded.type === 'optim-step' && recorded.result.weightsFingerprint !== undefined)
      this.counts.fingerprints += 1;
    if (isSame) return [];
    const difference = differenceOf(recorded.result, done.result, { ignoreAdded: true });
    if (difference === undefined) return [];
    this.#grow(Object.entries(difference.largest), `${done.type}: `);
    return [{ type: 'result', difference }];
  }

  async #compareFiles(record: OperationRecord, files: Manifest): Promise<Finding[]> {
    const { data, blobs, session } = this.#options;
    const { workspaceId } = session;
    const version = record.resolved.version;
    const recorded = version === undefined ? [] : await data.registry.files(workspaceId, version);
    if (recorded.length === 0) {
      this.counts.versionsGone += 1;
      return [];
    }
    this.counts.versions += 1;
    try {
      for (const { hash } of recorded) await data.blobs.file({ workspaceId, hash });
      const difference = await weightsDifference(
        { manifest: recorded, open: ({ hash }) => data.blobs.file({ workspaceId, hash }) },
        { manifest: files, open: ({ hash }) => blobs.file({ workspaceId, hash }) },
      );
      if (difference === undefined) return [];
      this.#grow(
        difference.arrays.map(({ file, largest }) => [file, largest] as const),
        'saved ',
      );
      return [{ type: 'weights', difference }];
    } catch (error) {
      const isSame = recorded.every(({ path, hash }) => files.some((file) => file.path === path && file.hash === hash));
      const verdict = isSame ? 'what was saved now has the recorded hash' : 'what was saved now has another hash';
      return [{ type: 'damaged', what: 'weights', message: `${asLoopwrightError(error).message}; ${verdict}` }];
    }
  }

  #grow(sizes: readonly (readonly [string, number])[], prefix: string): void {
    for (const [name, size] of sizes) {
      const key = prefix + name;
      this.largest.set(key, Math.max(this.largest.get(key) ?? 0, size));
    }
  }

  #leaveOut(record: TrainingRecord | SamplingRecord, place: string): void {
    this.counts.leftOut += 1;
    this.#report(record, place, []);
  }

  #report(record: OperationRecord, place: string, findings: readonly Finding[]): void {
    this.#done += 1;
    const ref = refOf(record, place);
    if (findings.length > 0) this.differences.push({ ...ref, findings });
    this.#options.onOperation?.({ ...ref, findings, done: this.#done, total: this.#total });
  }
}

function completed(done: AnyResult): { readonly status: 'Completed'; readonly done: AnyResult } {
  return { status: 'Completed', done };
}

function mustRun({ status, error }: OperationRecord): boolean {
  return status === 'Completed' || (status === 'Failed' && error !== null && repeatable.has(error.code));
}
