/** Models of this wire: each a session of the service, made new or from a saved version. */
import { createHash } from 'node:crypto';
import { complaint, type SessionTraining, type TrainingSpec, type VersionId } from '@loopwright/protocol';
import {
  type JsonObject,
  type LoadRequest,
  type ModelTurn,
  modelId,
  type NewModelRequest,
  type SavePath,
  savePath,
} from '@loopwright/wires/tinker';
import type { ModelRegistry } from '../models/model-registry.js';
import type { OperationRecord } from '../operations/operation-record.js';
import { type SessionRecord, trainedSpec, type WirePolicy } from '../sessions/session-record.js';
import type { SessionService } from '../sessions/session-service.js';
import { sessionNameOf } from './names.js';
import type { TinkerSaves } from './saves.js';
import type { TinkerSessions } from './sessions.js';

/** What a model's session keeps for this wire. */
interface ModelEcho {
  readonly wire: 'tinker';
  /** Of what asked for it, so that a repetition is known. */
  readonly request: string;
  readonly userMetadata: JsonObject;
  /** The version that it begins from. */
  readonly from?: { readonly path: SavePath; readonly version: VersionId; readonly optimizer: boolean };
}

export interface TinkerModelsOptions {
  readonly service: SessionService;
  readonly models: ModelRegistry;
  readonly sessions: TinkerSessions;
  readonly saves: TinkerSaves;
  readonly policy: WirePolicy;
}

type CreateRequest = Extract<LoadRequest, { type: 'create' }>;

export class TinkerModels {
  readonly #options: TinkerModelsOptions;

  constructor(options: TinkerModelsOptions) {
    this.#options = options;
  }

  /** @returns its id. @throws `unknown_session`, `unknown_model`, `quota_exceeded`, `sequence_conflict`, … */
  async create(request: NewModelRequest): Promise<string> {
    const { sessionId, number, baseModel, training, seed, userMetadata } = request;
    const { id } = await this.#options.models.find(baseModel);
    const echo: ModelEcho = { wire: 'tinker', request: hashOf(request), userMetadata };
    return this.#make({ sessionId, number, baseModel: id, training, seed, echo });
  }

  /** A model that begins from a saved version. The load itself is its first operation, made when its client asks for the result. */
  async createFrom(request: CreateRequest): Promise<string> {
    const { sessionId, number, path, optimizer, userMetadata } = request;
    const version = await this.#options.saves.resolve(path);
    if (optimizer && version.kind !== 'state') {
      throw complaint({
        code: 'checkpoint_mismatch',
        field: 'path',
        expected: 'weights that save_state saved, since the optimizer is asked for',
        got: path.kind,
        remedy: 'load it without the optimizer',
      });
    }
    const from = { path, version: version.id, optimizer };
    const echo: ModelEcho = { wire: 'tinker', request: hashOf(request), userMetadata, from };
    const { baseModel, training } = version;
    return this.#make({ sessionId, number, baseModel, training, seed: 0, echo });
  }

  async #make({
    sessionId,
    number,
    echo,
    seed,
    ...rest
  }: {
    readonly sessionId: string;
    readonly number: number;
    readonly baseModel: string;
    readonly training: SessionTraining;
    readonly seed: number | undefined;
    readonly echo: ModelEcho;
  }): Promise<string> {
    const { service, sessions, policy } = this.#options;
    await sessions.live(sessionId);
    const id = modelId(sessionId, number);
    const name = sessionNameOf(id);
    const known = await service.find(name);
    if (known === undefined) {
      const request = { name, ...rest, ...(seed === undefined ? {} : { seed }), groupName: name, policy };
      await sessions.makingRoom(() => service.create({ ...request, echo: { ...echo } }));
      return id;
    }
    if (echoOf(known).request === echo.request) return id;
    throw complaint({
      code: 'sequence_conflict',
      field: 'model_seq_id',
      expected: 'a number that no other model of the session has',
      got: String(number),
    });
  }

  /** @throws `unknown_session` */
  async get(id: unknown): Promise<ModelView> {
    const session = await this.#options.service.session(sessionNameOf(id));
    return { session, training: trainedSpec(session).training, userMetadata: echoOf(session).userMetadata };
  }

  /** Where a client's number stands in the session of its model. @throws `unknown_session` */
  async place({ modelId: id, sequenceNumber }: ModelTurn): Promise<ModelPlace> {
    const session = await this.#options.service.session(sessionNameOf(id));
    return { session: session.name, sequenceNumber: sequenceNumber + (echoOf(session).from === undefined ? 0 : 1) };
  }

  /** The load with which a model begins, accepted once; undefined for one that begins anew. */
  async firstLoad(
    session: SessionRecord,
  ): Promise<{ readonly path: string; readonly record: OperationRecord } | undefined> {
    const { from } = echoOf(session);
    if (from === undefined) return undefined;
    const operation = { type: 'load-state', version: from.version, loadOptimizer: from.optimizer } as const;
    const record = await this.#options.service.submitTraining(session.name, { sequenceNumber: 1 }, operation);
    return { path: savePath(from.path), record };
  }
}

/** Clients don't count the load with which a model begins, the service does. */
export interface ModelPlace {
  readonly session: string;
  readonly sequenceNumber: number;
}

export interface ModelView {
  readonly session: SessionRecord;
  readonly training: TrainingSpec;
  readonly userMetadata: JsonObject;
}

function echoOf({ echo }: SessionRecord): ModelEcho {
  return echo as unknown as ModelEcho; // true: sessions with such a name are made above
}

function hashOf(request: object): string {
  return createHash('sha256').update(JSON.stringify(request)).digest('hex');
}
