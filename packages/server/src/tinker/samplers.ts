/** Samplers of this wire: what a client samples from, fixed when the sampler is made. Their requests run in a session that only samples. */
import { createHash, randomUUID } from 'node:crypto';
import { complaint } from '@loopwright/protocol';
import { parseSavePath, type SampleRequest, type SaveRequest, savePath } from '@loopwright/wires/tinker';
import type { Clock } from '../clock.js';
import type { ModelRegistry } from '../models/model-registry.js';
import type { OperationRecord } from '../operations/operation-record.js';
import type { WeightsChoice } from '../operations/resolve.js';
import type { Registry } from '../registry/registry.js';
import type { WirePolicy } from '../sessions/session-record.js';
import type { SessionService } from '../sessions/session-service.js';
import type { ModelPlace } from './models.js';
import { samplingSessionName } from './names.js';
import { type SamplerRow, type TinkerRepository, unnamedDescription } from './repository.js';
import type { TinkerSaves } from './saves.js';
import type { TinkerSessions } from './sessions.js';

export interface TinkerSamplersOptions {
  readonly repository: TinkerRepository;
  readonly service: SessionService;
  readonly registry: Registry;
  readonly models: ModelRegistry;
  readonly sessions: TinkerSessions;
  readonly saves: TinkerSaves;
  readonly clock: Clock;
  readonly workspaceId: string;
  readonly policy: WirePolicy;
}

/** What a sampler is asked for. */
export interface SamplerRequest {
  readonly sessionId: unknown;
  readonly number: number;
  readonly baseModel: string | undefined;
  readonly modelPath: string | undefined;
}

export class TinkerSamplers {
  readonly #options: TinkerSamplersOptions;

  constructor(options: TinkerSamplersOptions) {
    this.#options = options;
  }

  /** Of a base model or a saved version; once for a number of its session. @returns its id */
  async create({ sessionId, number, baseModel, modelPath }: SamplerRequest): Promise<string> {
    const { repository, models, sessions, saves, clock } = this.#options;
    const { id: session } = await sessions.live(sessionId);
    if (!Number.isSafeInteger(number) || number < 0) {
      throw complaint({ field: 'sampling_session_seq_id', expected: 'a whole number', got: String(number) });
    }
    const path = modelPath === undefined ? undefined : parseSavePath(modelPath, 'model_path');
    const version = path === undefined ? undefined : await saves.resolve(path);
    if (version === undefined && baseModel === undefined) {
      throw complaint({ field: 'base_model', expected: 'a base model, or a model_path', got: 'neither' });
    }
    const base = version?.baseModel ?? (await models.find(baseModel!)).id; // one of the two is there
    const wanted = { model_path: path === undefined ? null : savePath(path), version_id: version?.id ?? null };
    const sampler = await repository.addSampler({
      ...{ id: randomUUID(), session_id: session, number, base_model: base, operation_id: null },
      ...{ ...wanted, created_at_ms: clock.now() },
    });
    if (sampler.base_model === base && sampler.model_path === wanted.model_path) return sampler.id;
    throw complaint({
      code: 'sequence_conflict',
      field: 'sampling_session_seq_id',
      expected: 'a number that no other sampler of the session has',
      got: String(number),
    });
  }

  /** Saves weights for a sampler of their own, which has no name and lives as long as its session. */
  async save({ modelId, ttlSeconds }: SaveRequest, { session, sequenceNumber }: ModelPlace): Promise<OperationRecord> {
    const { repository, service, clock } = this.#options;
    const { spec } = await service.session(session);
    const record = await service.submitTraining(
      session,
      { sequenceNumber },
      { type: 'save-weights', merge: false, description: unnamedDescription, ttlSeconds },
    );
    const { baseModel } = spec;
    await repository.addSampler({
      ...{ id: randomUUID(), session_id: modelId.split(':')[0]!, number: null, base_model: baseModel },
      ...{ model_path: null, version_id: null, operation_id: record.id, created_at_ms: clock.now() },
    });
    return record;
  }

  /** @throws `not_found` */
  async get(id: string): Promise<SamplerRow> {
    const sampler = await this.#options.repository.sampler(id);
    if (sampler !== undefined) return sampler;
    throw complaint({
      code: 'not_found',
      field: 'sampling_session_id',
      expected: 'a sampling session of this server',
      got: `${id.length} characters`,
      remedy: 'make a new sampling client',
    });
  }

  /** The number of one more copy of a client. @throws `not_found` */
  async join(id: string): Promise<number> {
    await this.get(id);
    return (await this.#options.repository.countClone(id)) ?? 0;
  }

  /** Accepts a request to sample, once for its number. */
  async sample(request: SampleRequest): Promise<OperationRecord> {
    const { service, models, policy } = this.#options;
    const { samplerId, sequenceNumber, prompt, params, ...rest } = request;
    const sampler = await this.get(samplerId);
    const { contextLength } = await models.card(sampler.base_model);
    const { maxTokens = Math.max(1, contextLength - prompt.length) } = params;
    if (prompt.length + maxTokens > contextLength) throw tooLong(prompt.length, maxTokens, contextLength);
    const session = await service.samplingSession({
      name: samplingSessionName(sampler.session_id, sampler.base_model),
      baseModel: sampler.base_model,
      groupName: sampler.session_id,
      echo: { wire: 'tinker' },
      policy,
    });
    const clientToken = `${samplerId}:${sequenceNumber}`;
    return service.submitSampling(
      session.name,
      {
        ...{ type: 'sample', prompt, ...rest },
        params: { seed: seedOf(clientToken), ...params, maxTokens },
        weights: await this.#weightsOf(sampler),
      },
      { clientToken },
    );
  }

  async #weightsOf({ version_id, operation_id }: SamplerRow): Promise<WeightsChoice> {
    if (version_id !== null) return { type: 'version', id: version_id };
    if (operation_id === null) return { type: 'base' };
    const version = await this.#options.registry.ofOperation(this.#options.workspaceId, operation_id);
    if (version !== undefined) return { type: 'version', id: version.id };
    throw complaint({
      code: 'unknown_version',
      field: 'sampling_session_id',
      expected: 'a sampler whose weights are there',
      got: 'one whose weights have gone, or are not saved yet',
      remedy: 'take a new sampling client of the model',
    });
  }
}

/** Where none is given: the same for every repetition of a request, another for every request. */
function seedOf(clientToken: string): number {
  return createHash('sha256').update(clientToken).digest().readUInt32LE(0) >>> 1;
}

/** In the words by which clients know it. */
function tooLong(prompt: number, maxTokens: number, limit: number) {
  return complaint({
    code: 'context_length_exceeded',
    message: `prompt length plus max_tokens exceeds the context: ${prompt} prompt tokens + ${maxTokens} max_tokens > ${limit}`,
    ...(prompt < limit
      ? { field: 'max_tokens', expected: `${limit - prompt} at most`, got: String(maxTokens) }
      : { field: 'prompt', expected: `${limit - 1} tokens at most`, got: String(prompt) }),
    remedy: prompt < limit ? 'ask for fewer tokens, or shorten the prompt' : 'shorten the prompt',
  });
}
