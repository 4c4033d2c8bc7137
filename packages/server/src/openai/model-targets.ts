/** What `model` names: a session, a saved version or a base model, and by which session it is answered. */
import { activeStatuses, complaint, LoopwrightError, type VersionId } from '@loopwright/protocol';
import type { ServedModel } from '@loopwright/wires/openai';
import type { ModelRegistry } from '../models/model-registry.js';
import type { Registry } from '../registry/registry.js';
import type { ServingSessions } from '../sessions/serving-sessions.js';
import { isServing, type SessionRecord } from '../sessions/session-record.js';
import type { SessionService } from '../sessions/session-service.js';

/** Who answers, and with which weights: those of a version, or the session's latest (its base model's before the first save). */
export interface AnswerTarget {
  readonly session: string;
  readonly version?: VersionId;
}

export interface ModelTargetsOptions {
  readonly service: SessionService;
  readonly serving: ServingSessions;
  readonly registry: Registry;
  readonly models: ModelRegistry;
  readonly workspaceId: string;
  /** @throws `invalid_argument` for an ARN that names no version */
  readonly versionOfArn: (arn: string) => VersionId;
}

/** Entries of each kind that a list has at most. */
const maximumListed = 1000;

/** Base models that a refusal names at most. */
const maximumNamed = 8;

export class ModelTargets {
  readonly #options: ModelTargetsOptions;

  constructor(options: ModelTargetsOptions) {
    this.#options = options;
  }

  /**
   * Looked for in this order: a version by its ARN, a session by its name, a version by `group/number`, a base model by id or path.
   *
   * @throws `unknown_model`; `session_not_active` for a session that has ended; what the engine can't be made of
   */
  async resolve(model: string): Promise<AnswerTarget> {
    const { service, serving, registry, models, workspaceId, versionOfArn } = this.#options;
    const isArn = model.startsWith('arn:');
    const session = isArn ? undefined : await found(service.session(model), 'unknown_session');
    if (session !== undefined && !isServing(session)) return this.#live(session);
    const id = isArn ? versionOfArn(model) : model;
    const version = /\/\d+$/.test(id) ? await found(registry.get(workspaceId, id), 'unknown_version') : undefined;
    if (version !== undefined) return { session: await serving.of(version.baseModel), version: version.id };
    const base = isArn ? undefined : await models.lookUp(model);
    if (base !== undefined) return { session: await serving.of(base.id) };
    throw complaint({
      code: 'unknown_model',
      field: 'body.model',
      expected: 'the name of a session, a saved version (group/number, or its ARN), or a base model of this server',
      got: model.slice(0, 200),
      remedy: await this.#remedyFor(model),
    });
  }

  async #remedyFor(model: string): Promise<string> {
    const bases = (await this.#options.models.list()).map(({ id }) => id);
    const some = bases.slice(0, maximumNamed).join(', ');
    const listed = `GET /v1/models lists what there is${some === '' ? '' : `, such as ${some}`}`;
    const pull = this.#options.models.pullRemedy(model);
    return pull === undefined ? listed : `${listed}; or ${pull}`;
  }

  /** Base models, then live sessions and saved versions, newest first. */
  async list(): Promise<ServedModel[]> {
    const { service, registry, models, workspaceId } = this.#options;
    const bases = (await models.list()).map(({ id }) => ({ id, kind: 'base' as const, root: id, createdAtMs: 0 }));
    const sessions = await service.list({ status: 'Running' }, { limit: maximumListed });
    const versions = await registry.list(workspaceId, {}, { limit: maximumListed });
    return [
      ...bases,
      ...sessions.items.map(({ name, spec, createdAtMs }) => ({
        id: name,
        kind: 'session' as const,
        root: spec.baseModel,
        createdAtMs,
      })),
      ...versions.items.map(({ id, baseModel, createdAtMs }) => ({
        id,
        kind: 'version' as const,
        root: baseModel,
        createdAtMs,
      })),
    ];
  }

  async #live(session: SessionRecord): Promise<AnswerTarget> {
    const { name, status } = await this.#options.service.whenStarted(session.name);
    if (activeStatuses.includes(status)) return { session: name };
    throw complaint({
      code: 'session_not_active',
      field: 'body.model',
      expected: 'a session that is at work',
      got: status,
      remedy: 'name a version that it saved, or its base model: both are answered without it',
    });
  }
}

/** Undefined instead of the error that says there is none. */
async function found<T>(lookingUp: Promise<T>, code: LoopwrightError['code']): Promise<T | undefined> {
  try {
    return await lookingUp;
  } catch (error) {
    if (LoopwrightError.isInstance(error) && error.code === code) return undefined;
    throw error;
  }
}
