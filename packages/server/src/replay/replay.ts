/** `loopwright replay`: recorded sessions, run again from an empty engine and compared bit for bit. */
import { setMaxListeners } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Device, Engine, ExecutionPlan } from '@loopwright/engine';
import type { ModelCard } from '@loopwright/protocol';
import { FileBlobStore } from '../blobs/file-blob-store.js';
import { embeddedEngines } from '../engines/embedded.js';
import { type EnginePlan, enginePlanOf } from '../engines/engine-host.js';
import { type InstalledModel, type ModelCache, ModelRegistry } from '../models/model-registry.js';
import { type SessionRecord, trainedSpec } from '../sessions/session-record.js';
import type { FieldDifference } from './differences.js';
import { type OperationFindings, planDifferences } from './findings.js';
import { KeptRun } from './kept-run.js';
import { openRecordedData, type RecordedData, sessionOf } from './recorded-data.js';
import { noCounts, type ReplayCounts, type ReplayedOperation, SessionReplay } from './replay-session.js';

/** Makes an engine for a plan. */
export type ReplayEngine = (card: ModelCard, plan: EnginePlan) => Promise<Engine>;

export interface ReplayOptions {
  /** That no server works on; it is only read. */
  readonly dataDir: string;
  /** All of them by default, one after another, each in an engine of its own. */
  readonly session?: string;
  /** Base models by id; sessions may name absolute directories as well. */
  readonly models: readonly InstalledModel[];
  readonly modelCache?: ModelCache;
  /** For float32 copies of weights. */
  readonly cacheDirectory: string;
  /** Leaves the recorded plan: bits may differ, and the report says by how much. */
  readonly threads?: number;
  /** Likewise. */
  readonly device?: Device;
  /**
   * Where what the replay came to is kept, as a data directory that `compareRuns` and `replay` read; new or empty, and there when all
   * is done. Without it nothing is kept.
   */
  readonly keepIn?: string;
  /** By default the embedded engine, in a process of its own. */
  readonly createEngine?: ReplayEngine;
  readonly onEvent?: (event: ReplayEvent) => void;
  readonly signal?: AbortSignal;
}

export type ReplayEvent =
  | ({ readonly type: 'session-start' } & ReplayPlan)
  | { readonly type: 'operation-end'; readonly session: string; readonly operation: ReplayedOperation }
  | { readonly type: 'session-end'; readonly report: ReplayReport };

export interface ReplayPlan {
  readonly session: string;
  readonly baseModel: string;
  readonly plan: ExecutionPlan;
  /** Where this replay leaves the recorded plan, recorded value first: bits are promised under one plan only. */
  readonly planChanges: readonly FieldDifference[];
}

export interface ReplayReport extends ReplayCounts {
  readonly session: string;
  /** Undefined for a session that never came to run. */
  readonly plan: ReplayPlan | undefined;
  readonly differences: readonly OperationFindings[];
  /** Largest |a − b| by operation and field; empty when nothing differs. */
  readonly largest: Readonly<Record<string, number>>;
}

/**
 * Replays the sessions of a data directory. The directory is not written, and no server may work on it.
 *
 * @returns a report for each session, oldest first
 * @throws `data_dir_in_use`, `invalid_argument`, `unknown_session`, `unknown_model`; what ends an engine; `cancelled`
 */
export async function replay(options: ReplayOptions): Promise<readonly ReplayReport[]> {
  const { dataDir, session: name, models, keepIn, signal } = options;
  if (signal !== undefined) setMaxListeners(0, signal); // every sampling call that runs listens to it
  await using data = await openRecordedData(dataDir);
  const sessions = name === undefined ? data.sessions : [sessionOf(data, name)];
  const registry = new ModelRegistry({
    models,
    allowPaths: true,
    ...(options.modelCache === undefined ? {} : { cache: options.modelCache }),
  });
  await using kept = keepIn === undefined ? undefined : await KeptRun.begin(data, sessions, keepIn);
  const reports: ReplayReport[] = [];
  for (const session of sessions) {
    const report = await replayOne(data, session, { ...options, registry, kept });
    reports.push(report);
    options.onEvent?.({ type: 'session-end', report });
  }
  await kept?.finish();
  return reports;
}

async function replayOne(
  data: RecordedData,
  session: SessionRecord,
  options: ReplayOptions & { readonly registry: ModelRegistry; readonly kept: KeptRun | undefined },
): Promise<ReplayReport> {
  const { cacheDirectory, createEngine = embedded(cacheDirectory), kept, onEvent, signal } = options;
  const { name, spec, plan: recorded } = session;
  if (recorded === null) return { session: name, plan: undefined, differences: [], largest: {}, ...noCounts };
  signal?.throwIfAborted();
  const card = await options.registry.card(spec.baseModel);
  const wanted = enginePlanOf(recorded);
  await using engine = await createEngine(card, {
    ...wanted,
    threads: options.threads ?? wanted.threads,
    device: options.device ?? wanted.device,
  });
  // What this engine is, whatever was recorded: the plan of a session that it makes by itself.
  const own = await engine.createSession(trainedSpec(session));
  await engine.closeSession(name);
  const { runtimeVersion, threads, device = 'cpu', deterministic } = own;
  const plan: ExecutionPlan = { ...recorded, engine: own.engine, runtimeVersion, threads, device, deterministic };
  const start = { session: name, baseModel: spec.baseModel, plan, planChanges: planDifferences(recorded, plan) };
  onEvent?.({ type: 'session-start', ...start });
  const directory = join(data.temporaryDirectory, 'replays', session.id);
  await mkdir(directory, { recursive: true });
  await kept?.beginSession(session, plan);
  const ownBlobs = { root: join(data.temporaryDirectory, 'blobs'), durability: 'process-crash', graceMs: 0 } as const;
  const replayed = new SessionReplay({
    data,
    session,
    engine,
    plan,
    directory,
    blobs: kept?.blobs ?? new FileBlobStore(ownBlobs),
    ...(kept && { kept }),
    ...(onEvent && { onOperation: (operation) => onEvent({ type: 'operation-end', session: name, operation }) }),
    ...(signal && { signal }),
  });
  await replayed.run();
  return {
    session: name,
    plan: start,
    differences: replayed.differences,
    largest: Object.fromEntries(replayed.largest),
    ...replayed.counts,
  };
}

function embedded(cacheDirectory: string): ReplayEngine {
  // What is replayed was done before, perhaps with more memory: nothing of it is refused for what it is predicted to need.
  const maxMemoryBytes = Number.MAX_SAFE_INTEGER;
  return (card, plan) =>
    embeddedEngines({ cacheDirectory, maxMemoryBytes, swapAfterMs: null })(card, { ...plan, onExit: () => {} });
}
