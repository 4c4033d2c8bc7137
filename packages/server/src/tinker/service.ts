/** The Tinker wire's side of the service: its parts, put together. */
import { complaint, LoopwrightError } from '@loopwright/protocol';
import { decompressZstd, type JsonObject } from '@loopwright/wires/tinker';
import type { Context } from 'hono';
import type { Logger } from 'pino';
import { isLoopback } from '../auth/authorize.js';
import type { BlobStore } from '../blobs/blob-store.js';
import type { Clock } from '../clock.js';
import type { ModelRegistry } from '../models/model-registry.js';
import type { Registry } from '../registry/registry.js';
import type { RouteEnv } from '../routes/context.js';
import { readBody } from '../routes/read-body.js';
import type { WirePolicy } from '../sessions/session-record.js';
import type { SessionService } from '../sessions/session-service.js';
import type { Database } from '../store/open-database.js';
import { Downloads } from './downloads.js';
import { TinkerFutures } from './futures.js';
import { TinkerModels } from './models.js';
import { baseModelName } from './names.js';
import { TinkerRepository } from './repository.js';
import { TinkerSamplers } from './samplers.js';
import { TinkerSaves } from './saves.js';
import { TinkerSessions } from './sessions.js';

export interface TinkerServiceOptions {
  readonly service: SessionService;
  readonly models: ModelRegistry;
  readonly registry: Registry;
  readonly database: Database;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly workspaceId: string;
  /** What this wire does at gaps and after failed passes. */
  readonly policy: WirePolicy;
}

export class TinkerService {
  readonly service: SessionService;
  readonly repository: TinkerRepository;
  readonly sessions: TinkerSessions;
  readonly saves: TinkerSaves;
  readonly models: TinkerModels;
  readonly samplers: TinkerSamplers;
  readonly futures: TinkerFutures;
  readonly downloads: Downloads;
  readonly #modelRegistry: ModelRegistry;
  readonly #logger: Logger;

  constructor(options: TinkerServiceOptions) {
    const { service, models, database, logger, workspaceId } = options;
    this.service = service;
    this.#modelRegistry = models;
    this.#logger = logger;
    this.repository = new TinkerRepository(database, workspaceId);
    const shared = { ...options, repository: this.repository };
    this.sessions = new TinkerSessions(shared);
    this.saves = new TinkerSaves(shared);
    this.models = new TinkerModels({ ...shared, sessions: this.sessions, saves: this.saves });
    this.samplers = new TinkerSamplers({ ...shared, sessions: this.sessions, saves: this.saves });
    this.futures = new TinkerFutures({ ...shared, models: this.models });
    this.downloads = new Downloads(options);
  }

  /** What is done from time to time: dead clients' sessions end, replaced saves go. */
  async sweep(): Promise<void> {
    await this.sessions.endDead();
    await this.saves.deleteReplaced();
  }

  /** In the background; its future waits for the end. */
  unload(sessionName: string): void {
    this.service.stopped(sessionName).catch((error: unknown) => {
      const code = LoopwrightError.isInstance(error) ? error.code : 'internal';
      this.#logger.error({ session: sessionName, code }, 'a model could not be unloaded');
    });
  }

  async capabilities(): Promise<JsonObject[]> {
    const models = await this.#modelRegistry.list();
    const cards = await Promise.all(models.map(({ id }) => this.#modelRegistry.card(id).catch(() => undefined)));
    return cards
      .filter((card) => card !== undefined)
      .map(({ id, contextLength }) => ({
        model_name: baseModelName(id),
        max_context_length: contextLength,
        trainable: true,
        sampleable: true,
      }));
  }

  async architecture(baseModel: string): Promise<string> {
    return (await this.#modelRegistry.card(baseModel)).architecture;
  }

  /** Where a client finds the tokenizer: by its name on the hub, or, on this machine, in the folder of a model that has none there. */
  async tokenizerId(baseModel: string, c: Context<RouteEnv>): Promise<string> {
    const name = baseModelName(baseModel);
    if (name !== baseModel || name.includes('/')) return name;
    const { directory } = await this.#modelRegistry.find(baseModel);
    return isFromHere(c) ? directory : name;
  }

  /** The bytes of a pass, which may be compressed. @throws `invalid_argument`, `payload_too_large` */
  async passBytes(c: Context<RouteEnv>): Promise<Uint8Array> {
    const bytes = await readBody(c);
    const encoding = c.req.header('content-encoding');
    if (encoding === undefined || encoding === 'identity') return bytes;
    if (encoding === 'zstd') return decompressZstd(bytes, c.var.admission.limits.bodyBytes);
    throw complaint({ field: 'content-encoding', expected: 'zstd, or none', got: encoding.slice(0, 64) });
  }
}

function isFromHere(c: Context<RouteEnv>): boolean {
  const host = new URL(c.req.url).hostname.replace(/^\[|\]$/g, '');
  return isLoopback(host);
}
