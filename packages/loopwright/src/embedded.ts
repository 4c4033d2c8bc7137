/** The embedded server: the session service and its engine, started in and for this process. */
import { randomUUID } from 'node:crypto';
import { join, resolve } from 'node:path';
import {
  type Device,
  type HostFacts,
  requireDeviceName,
  requirePrecisionName,
  requireSupportedHost,
  type SamplerPrecision,
} from '@loopwright/engine';
import { LoopwrightError } from '@loopwright/protocol';
import type { RunningServer, ServerOptions } from '@loopwright/server';
import { pino } from 'pino';
import type { Settings } from './config.js';
import { dataDirsIn } from './data-dirs.js';
import { HubCache } from './hub/hub-cache.js';
import { installedModels } from './models.js';
import { probeDevice, probePrecision } from './probe/probe.js';

export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug';

export interface EmbeddedServerOptions {
  /** Where saved versions go; by default `data` in the home folder or, while another process works on that, `data-2` and so on. */
  readonly dataDir?: string;
  /** Directories of further base models, by id. */
  readonly models?: Readonly<Record<string, string>>;
  /** To the standard error; `silent` by default. */
  readonly logLevel?: LogLevel;
  /** Of the engine; by default the processors of the machine, 8 at most. */
  readonly threads?: number;
  /** What the engine computes on; by default what LOOPWRIGHT_DEVICE says, or `cpu`. */
  readonly device?: Device;
  /** Of sampling; `float32` by default. */
  readonly samplerPrecision?: SamplerPrecision;
  /** Memory of an engine at most; nine tenths of the machine's by default. */
  readonly maxMemoryBytes?: number;
  /** New sessions train in a fraction of the memory, a third slower; false by default. */
  readonly lowMemory?: boolean;
  /** Told where saved versions go when that is not `data`; default: it goes to the standard error. */
  readonly onNotice?: (line: string) => void;
  readonly apiKey?: string;
  /** What the engine is to run on; this host by default. */
  readonly host?: HostFacts;
}

export interface EmbeddedServer extends AsyncDisposable {
  readonly url: string;
  readonly apiKey: string;
  readonly dataDir: string;
  /** Data directories beside this one, of processes that ran at the same time. */
  otherDataDirs(): Promise<string[]>;
  versionDirectory(modelPackageArn: string): Promise<string>;
  close(): Promise<void>;
}

/** Processes at once that share a home folder. */
const maxDataDirs = 64;

/**
 * Starts a server on a free loopback port. What an earlier process left running in the data directory is stopped: its
 * client is gone, and nobody else could go on with it.
 *
 * @throws `unsupported_host`, also for int8 where the processor can't; `device_unavailable`; `data_dir_in_use` for a data directory that was named; what `startServer` throws
 */
export async function startEmbeddedServer(
  settings: Settings,
  options: EmbeddedServerOptions = {},
): Promise<EmbeddedServer> {
  const {
    dataDir,
    models = {},
    logLevel = 'silent',
    threads,
    maxMemoryBytes,
    lowMemory,
    apiKey = randomUUID(),
    onNotice = (line) => void process.stderr.write(`${line}\n`),
    host,
  } = options;
  const device = requireDeviceName(options.device ?? settings.device ?? 'cpu');
  const { startServer } = await loadServer(host);
  await probeDevice(device);
  const samplerPrecision = requirePrecisionName(options.samplerPrecision ?? 'float32');
  await probePrecision(samplerPrecision, device);
  const serverOptions = {
    models: await installedModels({ models, folders: settings.modelFolders }),
    modelCache: new HubCache(settings.hub.cacheDirectory),
    apiKey,
    allowModelPaths: true,
    cacheDirectory: join(settings.home, 'cache'),
    leftoverSessions: 'stop',
    durability: 'process-crash',
    logger: pino({ level: logLevel }, pino.destination({ fd: 2, sync: true })),
    device,
    samplerPrecision,
    ...(threads === undefined ? {} : { threads }),
    ...(maxMemoryBytes === undefined ? {} : { maxMemoryBytes }),
    ...(lowMemory === undefined ? {} : { lowMemory }),
  } satisfies Omit<ServerOptions, 'dataDir'>;
  const start = (directory: string) => startServer({ ...serverOptions, dataDir: directory });
  if (dataDir !== undefined)
    return embed(await start(resolve(dataDir)), { apiKey, dataDir: resolve(dataDir), settings });
  let taken: string | undefined;
  for (let slot = 1; ; slot++) {
    const directory = join(settings.home, slot === 1 ? 'data' : `data-${slot}`);
    try {
      const server = await start(directory);
      // Whoever meant to work with that one finds nothing of this process there.
      if (taken !== undefined)
        onNotice(
          `Saved versions go to ${directory}, not to ${taken}: set LOOPWRIGHT_URL to its address if it is a server to work with.`,
        );
      return embed(server, { apiKey, dataDir: directory, settings });
    } catch (error) {
      if (!LoopwrightError.isInstance(error) || error.code !== 'data_dir_in_use' || slot === maxDataDirs) throw error;
      taken ??= error.details.got;
    }
  }
}

/**
 * The server package, loaded only where it is needed: users of a server by URL never load database and runtime.
 *
 * @throws `unsupported_host` before anything is loaded or written
 */
export async function loadServer(host?: HostFacts): Promise<typeof import('@loopwright/server')> {
  requireSupportedHost(host);
  return import('@loopwright/server');
}

interface Embedding {
  readonly apiKey: string;
  readonly dataDir: string;
  readonly settings: Settings;
}

function embed(server: RunningServer, { apiKey, dataDir, settings }: Embedding): EmbeddedServer {
  return {
    url: server.url,
    apiKey,
    dataDir,
    otherDataDirs: async () => (await dataDirsIn(settings.home)).filter((directory) => directory !== dataDir),
    versionDirectory: (modelPackageArn) => server.versionDirectory(modelPackageArn),
    close: () => server.close(),
    [Symbol.asyncDispose]: () => server.close(),
  };
}
