/** connect: a server by URL, or one that lives in this process. */

import {
  type FromStateOptions,
  type SamplingClient,
  type SamplingClientOptions,
  ServiceClient,
  type TrainingClient,
} from '@loopwright/client';
import type { Device, SamplerPrecision } from '@loopwright/engine';
import { complaint } from '@loopwright/protocol';
import { readSettings } from './config.js';
import { withPlaces } from './data-dirs.js';
import { type EmbeddedServer, type EmbeddedServerOptions, type LogLevel, startEmbeddedServer } from './embedded.js';

/** A server by its address. */
export interface RemoteOptions {
  /** Such as `http://127.0.0.1:8080`; LOOPWRIGHT_URL by default. */
  readonly url?: string;
  /** Bearer key of the server; LOOPWRIGHT_API_KEY by default. */
  readonly apiKey?: string;
  readonly dataDir?: never;
}

/** A server in this process. With `dataDir` it is used even if LOOPWRIGHT_URL is set. */
export interface EmbeddedOptions {
  readonly url?: never;
  /** Asked of whoever uses the embedded server's port; by default one that is made up and known to this process alone. */
  readonly apiKey?: string;
  /** Where saved versions go: see {@link ServiceConnection.dataDir}. */
  readonly dataDir?: string;
}

export type ConnectOptions = (RemoteOptions | EmbeddedOptions) & {
  /** Embedded only: directories of further base models, by id. Absolute directories can be named as base model without this. */
  readonly models?: Readonly<Record<string, string>>;
  /** Embedded only: what the server tells on the standard error; `silent` by default. */
  readonly logLevel?: LogLevel;
  /** Embedded only: threads of the engine; by default the processors of the machine, 8 at most. */
  readonly threads?: number;
  /**
   * Embedded only: what the engine computes on, `cpu`, `cuda`, `webgpu`, `directml` or `coreml`; by default what LOOPWRIGHT_DEVICE
   * says, or `cpu`. Results on others than `cpu` need not be the same twice.
   */
  readonly device?: Device;
  /**
   * Embedded only: `int8` draws tokens by weights rounded to 8 bits, faster and from other probabilities than those that are trained;
   * `float32` by default. Logprobs of samples are those that their tokens were drawn by, so importance ratios stay right; prompt logprobs,
   * `computeLogprobs` and training are of float32. Needs a processor with VNNI, or arm64.
   */
  readonly samplerPrecision?: SamplerPrecision;
  /**
   * Embedded only: memory of an engine at most; nine tenths of the machine's by default. What is predicted to need more is refused
   * with `memory_limit_exceeded` before any work.
   */
  readonly maxMemoryBytes?: number;
  /**
   * Embedded only: new sessions compute every layer again in the backward pass, in a fraction of the memory and about a third more time;
   * by default only where long rows or a tight limit ask for it.
   */
  readonly lowMemory?: boolean;
  /**
   * Embedded only: told, in one line, where saved versions go when another process works on the default data directory; default: it goes to the standard error.
   */
  readonly onNotice?: (line: string) => void;
};

/** A service client that also looks after the embedded server, where there is one: closing it ends server and engines. */
export class ServiceConnection extends ServiceClient {
  /**
   * Data directory of the embedded server; undefined with a server by URL. By default `data` in LOOPWRIGHT_HOME
   * (`~/.loopwright`) or, while another process works on that, the next free of `data-2`, `data-3` and so on.
   */
  readonly dataDir: string | undefined;
  readonly #embedded: EmbeddedServer | undefined;
  #ending: Promise<void> | undefined;

  /** Made by {@link connect}. */
  constructor(options: { readonly baseUrl: string; readonly apiKey?: string }, embedded?: EmbeddedServer) {
    super(options);
    this.#embedded = embedded;
    this.dataDir = embedded?.dataDir;
  }

  /**
   * The folder of a saved version of the embedded server: a PEFT adapter, or a model directory; undefined with a server by
   * URL, whose files lie elsewhere. It belongs to the server: copy it before you change or keep it.
   *
   * @throws `unknown_version`, `invalid_argument`
   */
  async versionDirectory(modelPackageArn: string): Promise<string | undefined> {
    return this.#embedded?.versionDirectory(modelPackageArn);
  }

  override createSamplingClient(options: SamplingClientOptions): Promise<SamplingClient> {
    return this.#orElsewhere(super.createSamplingClient(options));
  }

  override createTrainingClientFromState(options: FromStateOptions): Promise<TrainingClient> {
    return this.#orElsewhere(super.createTrainingClientFromState(options));
  }

  override createTrainingClientFromStateWithOptimizer(options: FromStateOptions): Promise<TrainingClient> {
    return this.#orElsewhere(super.createTrainingClientFromStateWithOptimizer(options));
  }

  /** Closes every client that this one made, then the embedded server. @throws what went wrong in the clients, all of it */
  override close(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    try {
      await super.close();
    } finally {
      await this.#embedded?.close();
    }
  }

  /** Data directories beside that of the embedded server, which processes made that ran beside another; none with a server by URL. */
  async otherDataDirs(): Promise<readonly string[]> {
    return (await this.#embedded?.otherDataDirs()) ?? [];
  }

  /** A version that isn't here may have been saved by a process that ran beside another. */
  async #orElsewhere<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw withPlaces(error, { in: this.dataDir ?? this.baseUrl, others: await this.otherDataDirs() });
    }
  }
}

/**
 * Connects to the server at `url` or LOOPWRIGHT_URL or, without either, starts one in this process: `loopwright-tiny` and
 * the models of the model folders are installed in it, those that `loopwright models pull` fetched are found by their hub name, and any
 * model directory can be named by its absolute path. Nothing is downloaded here.
 *
 * @returns a client to be closed (`await using`, or {@link withService}); until then the embedded server keeps the process alive
 * @throws `invalid_argument`; `data_dir_in_use` for a data directory that was named; `unsupported_host`, `device_unavailable`, `disk_full`
 * @example
 * await using service = await connect();
 * const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 16 });
 */
export async function connect(options: ConnectOptions = {}): Promise<ServiceConnection> {
  const {
    url,
    apiKey,
    dataDir,
    models,
    logLevel,
    threads,
    device,
    samplerPrecision,
    maxMemoryBytes,
    lowMemory,
    onNotice,
  } = options;
  if (url !== undefined && dataDir !== undefined) {
    throw complaint({
      field: 'dataDir',
      expected: 'either url or dataDir',
      got: 'both',
      remedy: 'a server by URL has its own data directory: leave dataDir out',
    });
  }
  const settings = readSettings();
  const address = url ?? (dataDir === undefined ? settings.url : undefined);
  if (address !== undefined) {
    const key = apiKey ?? settings.apiKey;
    return new ServiceConnection({ baseUrl: address, ...(key === undefined ? {} : { apiKey: key }) });
  }
  const embedded = embeddedOptions({
    ...{ apiKey, dataDir, models, logLevel, threads, device, samplerPrecision, maxMemoryBytes, lowMemory, onNotice },
  });
  const server = await startEmbeddedServer(settings, embedded);
  return new ServiceConnection({ baseUrl: server.url, apiKey: server.apiKey }, server);
}

/** What {@link withService} runs. */
export type ServiceWork<T> = (service: ServiceConnection) => Promise<T>;

/**
 * Runs `work` with a connection and closes it afterwards, for runtimes without `await using`.
 *
 * @example
 * await withService(async (service) => console.log(await service.listBaseModels()));
 */
export function withService<T>(work: ServiceWork<T>): Promise<T>;
export function withService<T>(options: ConnectOptions, work: ServiceWork<T>): Promise<T>;
export async function withService<T>(first: ConnectOptions | ServiceWork<T>, second?: ServiceWork<T>): Promise<T> {
  const work = typeof first === 'function' ? first : second;
  if (typeof work !== 'function') {
    throw complaint({ field: 'work', expected: 'a function of the service client', got: typeof work });
  }
  const service = await connect(typeof first === 'function' ? {} : first);
  let result: T;
  try {
    result = await work(service);
  } catch (error) {
    await service.close().catch(() => undefined); // the first failure says more
    throw error;
  }
  await service.close();
  return result;
}

/** Without the keys that are undefined. */
function embeddedOptions(
  options: { readonly [K in keyof EmbeddedServerOptions]: EmbeddedServerOptions[K] | undefined },
): EmbeddedServerOptions {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as EmbeddedServerOptions; // true: the same keys, none of them undefined
}
