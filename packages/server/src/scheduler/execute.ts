/** One operation, run on an engine: its result, and what it changes in the session and the registry. */
import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { CallOptions, Engine, SamplerWeights } from '@loopwright/engine';
import type { SamplingOperation, TrainingOperation, VersionId, WeightsRef } from '@loopwright/protocol';
import type { Transaction } from 'kysely';
import type { BlobStore, Manifest } from '../blobs/blob-store.js';
import { storageError } from '../blobs/file-blob-store.js';
import type { Clock } from '../clock.js';
import type { OperationLog, SessionEffects } from '../operations/operation-log.js';
import type { SamplingRecord, TrainingRecord } from '../operations/operation-record.js';
import type { Registry } from '../registry/registry.js';
import { trainedData } from '../registry/trained-data.js';
import { type SessionRecord, trainedSpec } from '../sessions/session-record.js';
import type { SnapshotStore } from '../snapshots/snapshot-store.js';
import type { Database } from '../store/open-database.js';
import type { Tables } from '../store/tables.js';
import type { AnyResult } from '../usage/ledger.js';

/** What running needs besides the engine. */
export interface ExecutionTools {
  readonly database: Database;
  readonly log: OperationLog;
  readonly registry: Registry;
  readonly blobs: BlobStore;
  readonly snapshots: SnapshotStore;
  readonly clock: Clock;
  /** Where half-made files may lie; emptied when the server starts. */
  readonly temporaryDirectory: string;
}

export interface Execution {
  readonly done: AnyResult;
  readonly effects: SessionEffects;
  readonly alongside?: (trx: Transaction<Tables>) => Promise<void>;
}

/** What a save writes down about its session. */
export interface Lineage {
  readonly step: number;
  readonly parent: VersionId | null;
}

export interface TrainingCall {
  readonly engine: Engine;
  readonly session: SessionRecord;
  readonly record: TrainingRecord;
  readonly operation: TrainingOperation;
  readonly lineage: Lineage;
  readonly options: CallOptions;
}

type SaveOperation = Extract<TrainingOperation, { type: 'save-weights' | 'save-state' }>;

export async function executeTraining(tools: ExecutionTools, call: TrainingCall): Promise<Execution> {
  const { engine, session, operation, options } = call;
  switch (operation.type) {
    case 'forward':
    case 'forward-backward': {
      const result = await engine.pass(session.name, operation, options);
      return { done: { type: operation.type, result }, effects: {} };
    }
    case 'optim-step': {
      const result = await engine.optimStep(session.name, operation.adam, options);
      return { done: { type: 'optim-step', result }, effects: { step: result.step } };
    }
    case 'load-state': {
      const { loadOptimizer, version } = operation;
      const saved = await tools.registry.get(session.workspaceId, version);
      const directory = await tools.registry.directory(session.workspaceId, version);
      await engine.loadState(session.name, { directory, loadOptimizer, ...options });
      const step = loadOptimizer ? saved.lineage.step : 0;
      return {
        done: { type: 'load-state', result: {} },
        effects: { step, gradientIncomplete: false, parent: version },
      };
    }
    case 'save-weights':
    case 'save-state':
      return save(tools, call, operation);
    default:
      return operation satisfies never;
  }
}

async function save(tools: ExecutionTools, call: TrainingCall, operation: SaveOperation): Promise<Execution> {
  const { session, record, lineage } = call;
  const { workspaceId } = session;
  const { log, registry, clock } = tools;
  const version = await log.reserveVersion(record, (trx) => registry.reserveId(trx, workspaceId, session.groupName));
  const data = await trainedData(tools, session, record.sequenceNumber);
  const files = await writeFiles(tools, call, operation, version);
  const ephemeral = operation.ttlSeconds ?? null;
  const done: AnyResult = { type: operation.type, result: { version } };
  return {
    done,
    effects: { samplerVersion: version },
    alongside: (trx) =>
      registry.insert(trx, {
        workspaceId,
        id: version,
        groupName: session.groupName,
        number: Number(version.slice(version.lastIndexOf('/') + 1)),
        kind: operation.type === 'save-state' ? 'state' : operation.merge ? 'merged' : 'sampler',
        description: operation.description,
        baseModel: session.spec.baseModel,
        training: trainedSpec(session).training,
        lineage: { ...lineage, sessionId: session.id, sessionName: session.name, operationId: record.id },
        data,
        expiresAtMs: ephemeral === null ? null : clock.now() + ephemeral * 1000,
        files,
      }),
  };
}

/** Lets the engine write, takes the files over as blobs, and leaves the directory where samplers will look for it. */
async function writeFiles(
  { blobs, registry, temporaryDirectory }: ExecutionTools,
  { engine, session, options }: TrainingCall,
  operation: SaveOperation,
  version: VersionId,
): Promise<Manifest> {
  const directory = join(temporaryDirectory, randomUUID());
  try {
    await mkdir(directory, { recursive: true });
    const { files } =
      operation.type === 'save-state'
        ? await engine.saveState(session.name, { version, directory, ...options })
        : await engine.saveWeights(session.name, { version, directory, merge: operation.merge, ...options });
    const manifest = await blobs.adopt(session.workspaceId, directory, files);
    const target = registry.directoryOf(session.workspaceId, version);
    await rm(target, { recursive: true, force: true }); // of an attempt that ended between here and its transaction
    await mkdir(dirname(target), { recursive: true });
    await rename(directory, target);
    return manifest;
  } catch (error) {
    await rm(directory, { recursive: true, force: true }).catch(() => {}); // the first failure is the one to report
    throw isStorage(error) ? storageError(error) : error;
  }
}

function isStorage(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'syscall' in error;
}

export interface SamplingCall {
  readonly engine: Engine;
  readonly session: SessionRecord;
  readonly record: SamplingRecord;
  readonly operation: SamplingOperation;
  readonly options: CallOptions;
}

export async function executeSampling(tools: ExecutionTools, call: SamplingCall): Promise<Execution> {
  const { engine, session, operation, options } = call;
  const weightsOf = async (ref: WeightsRef): Promise<SamplerWeights> =>
    ref.type === 'base' ? ref : { ...ref, directory: await tools.registry.directory(session.workspaceId, ref.id) };
  switch (operation.type) {
    case 'sample': {
      const { type, weights, ...request } = operation;
      const result = await engine.sample({ ...request, weights: await weightsOf(weights) }, options);
      return { done: { type, result }, effects: {} };
    }
    case 'compute-logprobs': {
      const { type, prompt, weights } = operation;
      const result = await engine.computeLogprobs({ prompt, weights: await weightsOf(weights) }, options);
      return { done: { type, result }, effects: {} };
    }
    case 'load-weights': {
      const { type, version } = operation;
      await engine.loadSampler(await weightsOf({ type: 'version', id: version }), options);
      return { done: { type, result: {} }, effects: { samplerVersion: version } };
    }
    default:
      return operation satisfies never;
  }
}
