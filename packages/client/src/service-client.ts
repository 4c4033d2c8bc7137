/** ServiceClient: the door of a server; makes training and sampling clients and looks after sessions and versions. */
import { asLoopwrightError, complaint, LoopwrightError, type TrainingSpec } from '@loopwright/protocol';
import {
  decodeUsage,
  encodeUsageQuery,
  type UsageLine,
  type UsageQuery,
  usagePath,
} from '@loopwright/wires/loopwright';
import { checkedArn } from './arns.js';
import { Catalog } from './catalog.js';
import {
  deleteModelPackage,
  describeModelPackage,
  listModelPackages,
  type ModelPackageFilter,
  type ModelPackageInfo,
  type ModelPackageKind,
  type PackageOrigin,
  packageOrigin,
} from './model-packages.js';
import { RegistryClient } from './registry-client.js';
import { patientPolicy } from './retry.js';
import { SamplingClient } from './sampling-client.js';
import { SessionLink } from './session-link.js';
import {
  type DeleteOptions,
  deleteSession,
  type LoraOptions,
  listSessions,
  loraSpec,
  type SessionFilter,
  type SessionSummary,
  type SessionToMake,
  startSession,
  stopSession,
} from './sessions.js';
import { TrainingClient } from './training-client.js';
import { type CallOptions, type ConnectOptions, Transport } from './transport.js';

interface SessionOptions extends CallOptions {
  /** Name of the session, 1–63 letters, digits and inner hyphens; default a unique one. */
  readonly name?: string;
  /** Shown in listings. */
  readonly description?: string;
  /** Initialises the adapter; drawn by the server when absent. */
  readonly seed?: number;
}

export interface LoraTrainingOptions extends SessionOptions, LoraOptions {
  /** Id of an installed model, such as `loopwright-tiny`, or the path of a directory on the server. */
  readonly baseModel: string;
}

/** An adapter with its options, or every weight, which has none. */
export type TrainingOptions =
  | ({ readonly trainingType: 'lora' } & LoraTrainingOptions)
  | ({ readonly trainingType: 'full'; readonly baseModel: string } & SessionOptions);

export interface FromStateOptions extends SessionOptions, LoraOptions {
  /** A version saved by `saveState` (or, without optimizer, by `saveWeightsForSampler`). */
  readonly modelPackageArn: string;
  /** Default: the one that the version was trained on. */
  readonly baseModel?: string;
}

/** Which weights to sample from: a base model as it is, or a saved version. */
export type SamplingClientOptions = CallOptions &
  (
    | { readonly baseModel: string; readonly modelPackageArn?: never }
    | { readonly modelPackageArn: string; readonly baseModel?: never }
  );

/**
 * The door of a Loopwright server. Constructing makes no request.
 *
 * Disposing closes every client that it made, and with them their sessions; with runtimes that have no `await using`, call `close`.
 *
 * @example
 * await using service = new ServiceClient({ baseUrl: 'http://127.0.0.1:8080' });
 * const training = await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', rank: 16 });
 */
export class ServiceClient implements AsyncDisposable {
  readonly baseUrl: string;
  /** Saved versions: what is said of them, what they came from, and their files. */
  readonly registry: RegistryClient;
  readonly #transport: Transport;
  readonly #catalog: Catalog;
  readonly #clients = new Set<AsyncDisposable>();
  #closing: Promise<void> | undefined;

  /** @throws `invalid_argument` when `baseUrl` is not an http URL */
  constructor(options: ConnectOptions) {
    this.#transport = new Transport(options);
    this.#catalog = new Catalog(this.#transport);
    this.registry = new RegistryClient(this.#transport);
    this.baseUrl = this.#transport.baseUrl;
  }

  /** A new session that trains a LoRA adapter. @throws `unknown_model`, `invalid_argument`, `session_exists`, `quota_exceeded`, … */
  createLoraTrainingClient(options: LoraTrainingOptions): Promise<TrainingClient> {
    return this.createTrainingClient({ trainingType: 'lora', ...options });
  }

  /** A new session that trains an adapter or, with `trainingType: 'full'`, every weight. */
  async createTrainingClient(options: TrainingOptions): Promise<TrainingClient> {
    this.#checkOpen('createTrainingClient');
    const training: TrainingSpec = options.trainingType === 'full' ? { type: 'full' } : loraSpec(options);
    return this.#startTraining(checkedModel(options.baseModel), training, options);
  }

  /** A new session that starts from saved weights, with a fresh optimizer. */
  createTrainingClientFromState(options: FromStateOptions): Promise<TrainingClient> {
    return this.#resume(options, false);
  }

  /** A new session that goes on where `saveState` was called, moments and step included. */
  createTrainingClientFromStateWithOptimizer(options: FromStateOptions): Promise<TrainingClient> {
    return this.#resume(options, true);
  }

  /** A sampler with a session of its own, which ends when the client is closed. */
  async createSamplingClient(options: SamplingClientOptions): Promise<SamplingClient> {
    this.#checkOpen('createSamplingClient');
    const { signal, modelPackageArn } = options;
    const origin = modelPackageArn === undefined ? undefined : await this.#origin(modelPackageArn, signal);
    const baseModel = checkedModel(options.baseModel ?? (await this.#idOf(origin, signal)));
    const model = await this.#catalog.find(baseModel, { signal });
    const training = originalTraining(origin?.training ?? {}, {});
    const name = await this.#startSession({ baseModelArn: model.arn, training }, signal);
    const client: SamplingClient = new SamplingClient({
      link: new SessionLink(this.#transport, name),
      catalog: this.#catalog,
      baseModel,
      modelPackageArn,
      onClose: async () => {
        this.#clients.delete(client);
        await stopSession(this.#transport, name);
      },
    });
    this.#clients.add(client);
    return client;
  }

  /** Ids of the installed base models, sorted. */
  listBaseModels(options: CallOptions = {}): Promise<string[]> {
    return this.#catalog.list(options);
  }

  /** All sessions of the server that match, whoever made them. */
  listSessions(filter: SessionFilter = {}): Promise<SessionSummary[]> {
    return listSessions(this.#transport, filter);
  }

  /** What was used, summed up by session (default), base model or type of operation; sessions that were deleted included. */
  async usage({ signal, ...query }: Partial<UsageQuery> & CallOptions = {}): Promise<UsageLine[]> {
    const path = `${usagePath}?${encodeUsageQuery({ by: 'session', ...query })}`;
    return decodeUsage(await this.#transport.json({ method: 'GET', path, signal }));
  }

  /** Saved versions, newest first. */
  listModelPackages(filter: ModelPackageFilter = {}): Promise<ModelPackageInfo[]> {
    return listModelPackages(this.#transport, filter);
  }

  /** The newest saved version of a kind; undefined when there is none. */
  async getLatestModelPackage(
    kind: ModelPackageKind,
    filter: Omit<ModelPackageFilter, 'kind' | 'maxResults'> = {},
  ): Promise<ModelPackageInfo | undefined> {
    const [latest] = await listModelPackages(this.#transport, { ...filter, kind, maxResults: 1 });
    return latest;
  }

  /** @returns false when it was gone already */
  async deleteModelPackage(modelPackageArn: string, options: CallOptions = {}): Promise<boolean> {
    return deleteModelPackage(this.#transport, checkedArn(modelPackageArn, 'modelPackageArn'), options);
  }

  /** Stops a session by name; one that has ended already is fine. @throws `unknown_session` */
  stopSession(name: string, options: CallOptions = {}): Promise<void> {
    return stopSession(this.#transport, name, options);
  }

  /** Deletes a session by name; its saved versions stay. @throws `unknown_session`, `invalid_transition` for one that runs */
  deleteSession(name: string, options: DeleteOptions = {}): Promise<void> {
    return deleteSession(this.#transport, name, options);
  }

  /** Closes every client that this one made. @throws what went wrong there, all of it */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const ends = await Promise.allSettled([...this.#clients].map((client) => client[Symbol.asyncDispose]()));
    const errors = ends.flatMap((end) => (end.status === 'rejected' ? [asLoopwrightError(end.reason)] : []));
    const [first] = errors;
    if (first === undefined) return;
    if (errors.length === 1) throw first;
    const message = errors.map((error) => error.message).join('; ');
    throw new LoopwrightError({ code: first.code, message, cause: new AggregateError(errors, message) });
  }

  #checkOpen(what: string): void {
    if (this.#closing !== undefined)
      throw new LoopwrightError({ code: 'disposed', message: `${what}: this service client was closed` });
  }

  /** The id of the base model of a version, which the hub knows by another name. */
  async #idOf(origin: PackageOrigin | undefined, signal: AbortSignal | undefined): Promise<string | undefined> {
    return origin === undefined ? undefined : (await this.#catalog.find(origin.hubContentName, { signal })).id;
  }

  async #origin(modelPackageArn: string, signal: AbortSignal | undefined): Promise<PackageOrigin> {
    const arn = checkedArn(modelPackageArn, 'modelPackageArn');
    const options = { signal, retry: patientPolicy };
    return packageOrigin(this.#transport, await describeModelPackage(this.#transport, arn, options), options);
  }

  async #startTraining(baseModel: string, training: TrainingSpec, options: SessionOptions): Promise<TrainingClient> {
    const { name, description, seed, signal } = options;
    const { arn } = await this.#catalog.find(baseModel, { signal });
    const session = { baseModelArn: arn, training, name, description, seed };
    const sessionName = await this.#startSession(session, signal);
    const client: TrainingClient = new TrainingClient({
      link: new SessionLink(this.#transport, sessionName),
      catalog: this.#catalog,
      baseModel,
      trainingType: training.type,
      onClosed: () => this.#clients.delete(client),
    });
    this.#clients.add(client);
    return client;
  }

  /** @returns its name. A session that comes up after this client was closed is stopped again. */
  async #startSession(session: SessionToMake, signal: AbortSignal | undefined): Promise<string> {
    const name = await startSession(this.#transport, session, { signal });
    if (this.#closing === undefined) return name;
    await stopSession(this.#transport, name);
    throw new LoopwrightError({
      code: 'disposed',
      message: `session ${name} was stopped: its service client was closed`,
    });
  }

  /** A new session plus a load that is waited for; a session whose load fails is stopped. */
  async #resume(options: FromStateOptions, withOptimizer: boolean): Promise<TrainingClient> {
    this.#checkOpen('createTrainingClientFromState');
    const { modelPackageArn, signal } = options;
    const origin = await this.#origin(modelPackageArn, signal);
    const baseModel = checkedModel(options.baseModel ?? (await this.#idOf(origin, signal)));
    const client = await this.#startTraining(baseModel, originalTraining(origin.training, options), options);
    try {
      if (withOptimizer) await client.loadStateWithOptimizer(modelPackageArn, { signal });
      else await client.loadState(modelPackageArn, { signal });
    } catch (error) {
      await client.close().catch(() => undefined);
      throw error;
    }
    return client;
  }
}

function checkedModel(baseModel: string | undefined): string {
  if (typeof baseModel === 'string' && baseModel !== '') return baseModel;
  throw complaint({
    field: 'baseModel',
    expected: 'the id of a model or the path of its directory',
    got: baseModel === '' ? 'an empty string' : typeof baseModel,
  });
}

/** What the version was trained with, where the caller says nothing else. */
function originalTraining(
  { TrainingType, Rank, Alpha, TargetModules, SamplerPath }: PackageOrigin['training'],
  {
    rank = Rank,
    alpha = rank === Rank ? Alpha : undefined,
    targetModules = TargetModules,
    samplerPath = SamplerPath,
  }: LoraOptions,
): TrainingSpec {
  if (TrainingType === 'full') return { type: 'full' };
  return loraSpec({
    ...(rank === undefined ? {} : { rank }),
    ...(alpha === undefined ? {} : { alpha }),
    ...(targetModules === undefined ? {} : { targetModules }),
    ...(samplerPath === undefined ? {} : { samplerPath }),
  });
}
