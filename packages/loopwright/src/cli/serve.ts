/** `loopwright serve`: a server for loops on this machine or others. */
import { join, resolve } from 'node:path';
import { type Device, defaultMaxMemoryBytes, requireDeviceName, type SamplerPrecision } from '@loopwright/engine';
import type { LoadedPrecision } from '@loopwright/server';
import type { WireName } from '@loopwright/wires';
import { pino } from 'pino';
import { type LogLevel, loadServer } from '../embedded.js';
import { HubCache } from '../hub/hub-cache.js';
import { listenForInterrupt } from '../interrupt.js';
import { installedModels } from '../models.js';
import { probeDevice, probePrecision } from '../probe/probe.js';
import type { CommandContext } from './context.js';
import { exitCodes } from './exit-codes.js';
import { bytesText } from './text.js';

export interface ServeOptions {
  readonly port: number;
  readonly host: string;
  readonly data?: string;
  readonly model?: Readonly<Record<string, string>>;
  readonly apiKey?: string;
  readonly threads?: number;
  readonly device?: Device;
  readonly samplerPrecision: SamplerPrecision;
  /** Bytes. */
  readonly maxMemory?: number;
  readonly lowMemory?: boolean;
  /** Minutes; 0 for never. */
  readonly swapAfter: number;
  readonly maxRedoSeconds: number;
  readonly wires?: readonly WireName[];
  readonly maxSessions: number;
  /** Minutes; 0 for never. */
  readonly idleTimeout: number;
  /** Minutes; 0 for no end. */
  readonly lifetime: number;
  /** Hours; 0 for never. */
  readonly saveTtl: number;
  readonly shutdownSeconds: number;
  /** Bytes. */
  readonly maxBody?: number;
  readonly maxRequests?: number;
  readonly logLevel: LogLevel;
}

/** Serves until Ctrl-C or SIGTERM. */
export async function serve(options: ServeOptions, { console, settings, exitWith }: CommandContext): Promise<void> {
  const { port, host, model = {}, threads, logLevel, apiKey = settings.apiKey } = options;
  const device = requireDeviceName(options.device ?? settings.device ?? 'cpu');
  const { maxMemory = defaultMaxMemoryBytes(), lowMemory = false, swapAfter, maxRedoSeconds, wires } = options;
  const { maxSessions, idleTimeout, lifetime, samplerPrecision } = options;
  const dataDir = resolve(options.data ?? join(settings.home, 'data'));
  const models = await installedModels({ models: model, folders: settings.modelFolders });
  const modelCache = new HubCache(settings.hub.cacheDirectory);
  const { startServer } = await loadServer();
  await probeDevice(device);
  await probePrecision(samplerPrecision, device);
  using interrupt = listenForInterrupt({
    onInterrupt: () =>
      console.note('Stopping: sessions are kept, and go on when a server starts on this data directory again.'),
  });
  await using server = await startServer({
    dataDir,
    port,
    host,
    models,
    modelCache,
    cacheDirectory: join(settings.home, 'cache'),
    logger: pino({ level: logLevel }, pino.destination({ fd: 2, sync: true })),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(threads === undefined ? {} : { threads }),
    device,
    samplerPrecision,
    onPrecisionEffect: (loaded) => {
      console.event({ type: 'precision-effect', samplerPrecision, ...loaded });
      console.line(precisionText(loaded));
    },
    maxMemoryBytes: maxMemory,
    lowMemory,
    swapAfterMs: orNever(swapAfter),
    maxRedoSeconds,
    ...(wires === undefined ? {} : { wires }),
    maxLiveSessions: maxSessions,
    idleTimeoutMs: orNever(idleTimeout),
    lifetimeMs: orNever(lifetime),
    saveTtlSeconds: options.saveTtl === 0 ? null : options.saveTtl * 3600,
    stopGraceMs: Math.min(10_000, options.shutdownSeconds * 500),
    limits: {
      ...(options.maxBody === undefined ? {} : { bodyBytes: options.maxBody }),
      ...(options.maxRequests === undefined ? {} : { requests: options.maxRequests }),
    },
  });
  console.event({ type: 'listening', url: server.url, dataDir, models: models.map(({ id }) => id) });
  console.line(`${console.paint.bold('Loopwright')} listens on ${console.paint.cyan(server.url)}`);
  console.table([
    ['models', models.map(({ id }) => id).join(', ')],
    ['pulled', await pulledText(modelCache)],
    ['data', dataDir],
    ['device', device],
    ...(samplerPrecision === 'float32'
      ? []
      : [['sampling', `in ${samplerPrecision}: its effect on logprobs is told as a model is loaded`] as const]),
    ['memory', `${bytesText(maxMemory)} an engine at most`],
    ['key', apiKey === undefined ? 'none: everybody on this machine may connect' : 'asked of every request'],
    ['loops', `LOOPWRIGHT_URL=${server.url}${apiKey === undefined ? '' : ' LOOPWRIGHT_API_KEY=…'}`],
    ['stop', 'Ctrl-C; sessions go on at the next start'],
  ]);
  await aborted(interrupt.signal);
  exitWith(exitCodes.interrupted);
  // What was accepted is durable, so that nothing is lost by an end at once; a native computation that hangs must not hold it up.
  const hurry = () => {
    console.note(`Not closed within ${options.shutdownSeconds} s: ended at once.`);
    process.exit(exitCodes.interrupted);
  };
  setTimeout(hurry, options.shutdownSeconds * 1000).unref();
}

/** Such as `smollm samples in int8: of 320 tokens, logprobs are off float32 by 0.264 nats on average, 1.81 at most; the likeliest token is the same at 92 %`. */
function precisionText({ model, tokens, meanDifference, largestDifference, sameLikeliest }: LoadedPrecision): string {
  const [mean, largest] = [meanDifference, largestDifference].map((nats) => nats.toPrecision(3));
  const share = Math.round(100 * sameLikeliest);
  return `${model} samples in int8: in ${tokens} tokens, logprobs are off float32 by ${mean} nats on average, ${largest} at most; the likeliest token is the same at ${share} %`;
}

function orNever(minutes: number): number | null {
  return minutes === 0 ? null : minutes * 60_000;
}

async function pulledText(cache: HubCache): Promise<string> {
  const models = await cache.list();
  return models.length === 0 ? 'none (loopwright models pull org/name)' : models.map(({ id }) => id).join(', ');
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done();
    else signal.addEventListener('abort', () => done(), { once: true });
  });
}
