/** The composition root: the one file that knows every concrete class. Starts a server over a data directory. */
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type Device,
  defaultMaxMemoryBytes,
  defaultSwapAfterMs,
  defaultThreads,
  nudgeThreadPool,
  type SamplerPrecision,
} from '@loopwright/engine';
import { complaint } from '@loopwright/protocol';
import { type WireName, wireNames } from '@loopwright/wires';
import { type Logger, pino } from 'pino';
import { authorizer, checkExposure } from './auth/authorize.js';
import { once, oneAtATime, repeat } from './background.js';
import type { BlobStore } from './blobs/blob-store.js';
import { FileBlobStore, storageError } from './blobs/file-blob-store.js';
import { checkMaxRedo, checkMemoryLimit, checkSaveTtl, checkSwapAfter } from './check-options.js';
import { type Clock, systemClock } from './clock.js';
import type { Durability } from './durability.js';
import { embeddedEngines, type LoadedPrecision } from './engines/embedded.js';
import { type CreateEngine, EngineHost } from './engines/engine-host.js';
import { Admission } from './limits/admission.js';
import { createHttpServer } from './limits/http-server.js';
import { completeLimits, type Limits } from './limits/limits.js';
import { type InstalledModel, type ModelCache, ModelRegistry } from './models/model-registry.js';
import { OperationLog } from './operations/operation-log.js';
import { type DrawSeed, randomSeed } from './operations/resolve.js';
import { collectGarbage } from './registry/collect.js';
import { noteOrphans } from './registry/orphans.js';
import { Registry } from './registry/registry.js';
import { createApp } from './routes/app.js';
import type { App } from './routes/context.js';
import { HubNames } from './routes/hub-names.js';
import { arns } from './routes/runtime-plane.js';
import type { WirePolicy } from './sessions/session-record.js';
import { SessionRepository } from './sessions/session-repository.js';
import { SessionService } from './sessions/session-service.js';
import { SnapshotStore } from './snapshots/snapshot-store.js';
import { closeHttp, listen } from './socket.js';
import { lockDataDirectory } from './store/data-lock.js';
import { moveDeadlines } from './store/move-deadlines.js';
import { type Database, openDatabase } from './store/open-database.js';
import type { SyncFile } from './store/wal-sync.js';
import { TinkerService } from './tinker/service.js';
import { defaultWorkspace } from './workspace.js';

export interface ServerOptions {
  /** Made where it is missing. Database, blobs and checkpoints lie in it; one server at a time. */
  readonly dataDir: string;
  /** 0 takes a free one. */
  readonly port?: number;
  /** `127.0.0.1` by default; others need a key. */
  readonly host?: string;
  readonly models: readonly InstalledModel[];
  /** Further models, looked for when a session names one; none by default. */
  readonly modelCache?: ModelCache;
  /** 8 to 256 printable characters; absent lets everybody on this machine in. */
  readonly apiKey?: string;
  /** Makes the engine of a model; by default the embedded one, in a process of its own. */
  readonly engineFactory?: CreateEngine;
  /** Where the embedded engine keeps float32 copies of weights; `cache` in the data directory by default. Servers may share one. */
  readonly cacheDirectory?: string;
  /**
   * Threads of the embedded engine, for sessions that are created from now on; by default the processors of the machine, 8 at
   * most. Sessions that go on keep theirs, in an engine of their own.
   */
  readonly threads?: number;
  /**
   * What the embedded engine computes on, for sessions that are created from now on; `cpu` by default. Where it isn't there, sessions
   * are refused with `device_unavailable`. Sessions that go on keep theirs.
   */
  readonly device?: Device;
  /**
   * `int8`: sessions that are created from now on draw tokens by weights rounded to 8 bits, faster and from other probabilities; `float32` by
   * default. Sampled logprobs are those that tokens were drawn by, all others stay in float32. Where the processor can't, sessions are
   * refused with `unsupported_host`. Sessions that go on keep theirs.
   */
  readonly samplerPrecision?: SamplerPrecision;
  /** Told, as an engine is loaded that samples in int8, how far its logprobs are from float32. */
  readonly onPrecisionEffect?: (loaded: LoadedPrecision) => void;
  /**
   * Memory at most of an embedded engine, of which there is one for each base model, number of threads, device and precision in use; nine tenths of the machine's by default.
   * Micro-batches of new sessions are made to fit it, and what is predicted to need more is refused with `memory_limit_exceeded`.
   */
  readonly maxMemoryBytes?: number;
  /**
   * New sessions compute every layer again in the backward pass, in a fraction of the memory and about a third more time; by default only
   * where long rows or a tight limit ask for it.
   */
  readonly lowMemory?: boolean;
  /**
   * Sessions that had no work for so long are put on the disk (in `swap` of the cache folder) until their next operation, which then
   * takes a moment longer, and a base model on which no session trains is let go until it is asked for again; 10 minutes by default,
   * null keeps all in memory.
   */
  readonly swapAfterMs?: number | null;
  /** Wires that are spoken; all by default. What belongs to no wire (health, models, usage) is there in any case. */
  readonly wires?: readonly WireName[];
  /** Silent by default. */
  readonly logger?: Logger;
  /** Whether sessions may name a model directory instead of an id. True by default without a key, false with one. */
  readonly allowModelPaths?: boolean;
  /** 8 by default. */
  readonly maxLiveSessions?: number;
  /**
   * What becomes of live sessions that an earlier process left: they go on (`resume`, the default), or are stopped, for
   * servers that live and die with their only client.
   */
  readonly leftoverSessions?: 'resume' | 'stop';
  /** Sampling operations of a session that run at once; 64 by default. */
  readonly samplingConcurrency?: number;
  /** A missing sequence number fails its session after this; 10 minutes by default, null waits for ever. */
  readonly gapTimeoutMs?: number | null;
  /** Sessions without operations expire after this; null (the default) lets them live. Time that the machine sleeps does not count. */
  readonly idleTimeoutMs?: number | null;
  /** Sessions expire so long after their creation, whatever they do; null (the default) lets them live. */
  readonly lifetimeMs?: number | null;
  /**
   * Weights that a client of the SageMaker wire saves expire so long after the save, where it doesn't say (its SDK can't); null (the default)
   * keeps them. States stay, and so does what our own client saves, which names a time where it wants one.
   */
  readonly saveTtlSeconds?: number | null;
  /** How long running work may take to give up at a stop or a close; 10 s by default. */
  readonly stopGraceMs?: number;
  /** Between looks for expired versions and idle sessions; 1 minute by default. */
  readonly sweepMs?: number;
  /**
   * Engine time at most that a crash costs a session: snapshots of busy sessions are taken so often (in `snapshots` of the data
   * directory). 30 s by default; null takes none, and the whole log since the last saved state is run again.
   */
  readonly maxRedoSeconds?: number | null;
  /** Limits on requests, where others than the table's are wanted; see docs/guides/limits.md. */
  readonly limits?: Partial<Limits>;
  /** What accepted operations survive; `power-loss` by default. */
  readonly durability?: Durability;
  /** How the log of the database is brought onto the disk; in tests, by a disk that is slow or fails. */
  readonly sync?: SyncFile;
  readonly clock?: Clock;
  readonly blobs?: BlobStore;
  readonly drawSeed?: DrawSeed;
}

export interface RunningServer extends AsyncDisposable {
  /** Such as `http://127.0.0.1:43711`. */
  readonly url: string;
  readonly port: number;
  /** The application, for requests without a socket: `app.request(path)`. */
  readonly app: App;
  /** The folder of a saved version, named by its ARN: a PEFT adapter, or a model directory. @throws `unknown_version` */
  versionDirectory(modelPackageArn: string): Promise<string>;
  /** Removes expired versions and idle sessions now; also done from time to time. */
  sweep(): Promise<void>;
  /**
   * Refuses new requests with `shutting_down`, answers what is held, lets go of sessions (the next server takes them up) and ends the
   * engines: within `stopGraceMs` and 5 s, as a rule. Closing twice is harmless.
   */
  close(): Promise<void>;
}

/**
 * Starts a server.
 *
 * @throws `port_in_use`; `invalid_argument` (host without key, models, memory limit, time until a swap, work done again); `data_dir_in_use` when another server uses the data directory; `internal` when a newer release wrote it
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { dataDir, port = 0, host = '127.0.0.1', apiKey } = options;
  checkExposure({ host, apiKey });
  const limits = completeLimits(options.limits);
  const service = await openService(options);
  const http = createHttpServer(service.app, limits);
  try {
    await listen(http, port, host);
  } catch (error) {
    await service.close();
    throw error;
  }
  const address = http.address();
  const bound = typeof address === 'object' && address !== null ? address.port : port;
  options.logger?.info({ host, port: bound, dataDir }, 'listening');
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= closeHttp(http, service.close);
    return closing;
  };
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    port: bound,
    app: service.app,
    versionDirectory: service.versionDirectory,
    sweep: service.sweep,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** How long a closing server waits for requests that are being answered. */
const lastAnswersMs = 2000;

/** A server without its socket. */
export interface OpenService {
  readonly app: App;
  versionDirectory(modelPackageArn: string): Promise<string>;
  sweep(): Promise<void>;
  close(): Promise<void>;
}

/** Everything but the socket: opens the data directory, takes its sessions up, and makes the application. Port, host and key are the caller's to check. */
export async function openService(options: ServerOptions): Promise<OpenService> {
  const { dataDir, clock = systemClock, logger = pino({ level: 'silent' }), models: installed, apiKey } = options;
  const {
    allowModelPaths = apiKey === undefined,
    cacheDirectory = join(dataDir, 'cache'),
    threads = defaultThreads(),
    device = 'cpu',
    samplerPrecision = 'float32',
    onPrecisionEffect,
    maxMemoryBytes = defaultMaxMemoryBytes(),
    lowMemory = false,
    swapAfterMs = defaultSwapAfterMs,
    maxRedoSeconds = 30,
  } = options;
  nudgeThreadPool();
  const limits = completeLimits(options.limits);
  checkMemoryLimit(maxMemoryBytes);
  checkSwapAfter(swapAfterMs);
  checkMaxRedo(maxRedoSeconds);
  checkSaveTtl(options.saveTtlSeconds ?? null);
  const embedded = { cacheDirectory, maxMemoryBytes, lowMemory, swapAfterMs, logger, onPrecisionEffect };
  const { engineFactory = embeddedEngines(embedded) } = options;
  const workspaceId = defaultWorkspace;
  const temporaryDirectory = join(dataDir, 'temporary');
  const versions = join(dataDir, 'versions');
  const models = new ModelRegistry({
    models: installed,
    allowPaths: allowModelPaths,
    ...(options.modelCache === undefined ? {} : { cache: options.modelCache }),
  });
  await makeDirectory(dataDir);
  const lock = lockDataDirectory(dataDir);
  let database: Database | undefined;
  try {
    database = openDatabase(join(dataDir, 'loopwright.db'), { durability: options.durability, sync: options.sync });
    await emptyDirectory(temporaryDirectory);
    const blobs =
      options.blobs ??
      new FileBlobStore({
        root: join(dataDir, 'blobs'),
        ...(options.durability === undefined ? {} : { durability: options.durability }),
      });
    const log = new OperationLog({ database, blobs, clock });
    const registry = new Registry({ database, blobs, clock, directory: versions });
    const { durability } = options;
    const snapshots = new SnapshotStore({ database, clock, root: join(dataDir, 'snapshots'), durability });
    const sessions = new SessionRepository(database, clock);
    const engines = new EngineHost({ models, create: engineFactory, plan: { threads, device, samplerPrecision } });
    const service = new SessionService({
      workspaceId,
      database,
      sessions,
      tools: { database, log, registry, blobs, snapshots, clock, temporaryDirectory },
      models,
      engines,
      logger,
      limits: {
        maxLiveSessions: options.maxLiveSessions ?? 8,
        samplingConcurrency: options.samplingConcurrency ?? 64,
        maxOpenOperations: limits.openOperations,
        stopGraceMs: options.stopGraceMs ?? 10_000,
        idleTimeoutMs: options.idleTimeoutMs ?? null,
        lifetimeMs: options.lifetimeMs ?? null,
        maxRedoMs: maxRedoSeconds === null ? null : maxRedoSeconds * 1000,
      },
      drawSeed: options.drawSeed ?? randomSeed,
    });
    const admission = new Admission({ limits, clock });
    const policy: WirePolicy = {
      incompleteGradient: 'fail-next-step',
      gapTimeoutMs: options.gapTimeoutMs === undefined ? 600_000 : options.gapTimeoutMs,
    };
    const tinker = new TinkerService({
      ...{ service, models, registry, database, blobs, clock, logger, workspaceId, policy },
    });
    const app = createApp({
      service,
      registry,
      blobs,
      models,
      engines,
      workspaceId,
      logger,
      wires: options.wires ?? wireNames,
      hub: new HubNames(models),
      authorizer: authorizer(apiKey),
      admission,
      policy,
      tinker,
      saveTtlSeconds: options.saveTtlSeconds ?? null,
      version: await ownVersion(),
      startedAtMs: clock.now(),
    });
    await service.recover(options.leftoverSessions);
    const opened = database;
    let orphansNoted = false;
    const sweep = oneAtATime(async () => {
      const movedMs = clock.resync();
      if (Math.abs(movedMs) >= 1000) {
        logger.warn({ movedMs }, 'the time of day was moved, or the machine slept: what expires is put off by as much');
        await moveDeadlines(opened, movedMs);
      }
      await service.expire();
      await tinker.sweep();
      if (swapAfterMs !== null) {
        const times = { nowMs: clock.elapsedMs(), afterMs: swapAfterMs };
        const ended = await engines.endIdle(service.engineNeeds(), times);
        if (ended.length > 0) logger.info({ models: ended }, 'models that nothing used were let go');
      }
      if (!orphansNoted) {
        const orphans = await noteOrphans({ database: opened, blobs });
        orphansNoted = true;
        if (orphans > 0) logger.info({ orphans }, 'files that a crash left without a row are collected');
      }
      await collectGarbage({ database: opened, blobs, registry, clock });
    });
    const sweeper = repeat({ clock, everyMs: options.sweepMs ?? 60_000, work: sweep, logger });
    const close = once(async () => {
      admission.close();
      await sweeper.stop();
      await service.close();
      await admission.emptied(lastAnswersMs);
      await engines.close();
      await opened.destroy();
      lock.release();
    });
    const versionDirectory = async (modelPackageArn: string) => {
      const { id } = await registry.get(workspaceId, arns.toVersion(modelPackageArn, 'modelPackageArn'));
      return registry.directory(workspaceId, id);
    };
    return { app, versionDirectory, sweep, close };
  } catch (error) {
    await database?.destroy();
    lock.release();
    throw error;
  }
}

async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true });
  } catch (cause) {
    const { code = '' } = cause as NodeJS.ErrnoException; // only compared and printed
    if (!['EEXIST', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS'].includes(code)) throw storageError(cause);
    throw complaint({
      field: 'dataDir',
      expected: 'a directory that can be made and written here',
      got: `${path}, which cannot be (${code})`,
      remedy: 'name another directory, or make this one writable',
      cause,
    });
  }
}

async function emptyDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  for (const name of await readdir(path)) await rm(join(path, name), { recursive: true, force: true });
}

async function ownVersion(): Promise<string> {
  const text = await readFile(new URL('../package.json', import.meta.url), 'utf8');
  const { version } = JSON.parse(text) as { version: string }; // true: our own package.json
  return version;
}
