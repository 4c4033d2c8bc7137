/** What clients of this wire save under names: paths, listings, and their end. */
import { complaint } from '@loopwright/protocol';
import { type SavedCheckpoint, type SavePath, type SaveRequest, savePath } from '@loopwright/wires/tinker';
import type { Clock } from '../clock.js';
import type { OperationRecord } from '../operations/operation-record.js';
import type { Registry } from '../registry/registry.js';
import type { Version } from '../registry/version.js';
import type { SessionService } from '../sessions/session-service.js';
import type { Database } from '../store/open-database.js';
import { countSaves, type ListedSave, listSaves, replacedVersions, type SaveFilter } from './listed-saves.js';
import type { ModelPlace } from './models.js';
import { type Part, pathOf, type SaveRow, type TinkerRepository } from './repository.js';

/** Of one model, of some kinds; of all without. */
export type SaveListFilter = Pick<SaveFilter, 'modelId' | 'kinds'>;

export interface TinkerSavesOptions {
  readonly database: Database;
  readonly repository: TinkerRepository;
  readonly service: SessionService;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly workspaceId: string;
}

/** A save that is there. */
interface Found {
  readonly row: SaveRow;
  readonly version: Version;
}

export class TinkerSaves {
  readonly #options: TinkerSavesOptions;

  constructor(options: TinkerSavesOptions) {
    this.#options = options;
  }

  /** Accepts a save under a name, or finds the one of its number. @throws `sequence_conflict` when another save has the name */
  async save(
    request: SaveRequest & { readonly name: string },
    { session, sequenceNumber }: ModelPlace,
  ): Promise<OperationRecord> {
    const { modelId, kind, name, ttlSeconds, overwrite, userMetadata } = request;
    const { repository, service, clock } = this.#options;
    if (!overwrite && (await service.training(session, sequenceNumber)) === undefined) {
      await this.#checkFree({ modelId, kind, name });
    }
    const record = await service.submitTraining(
      session,
      { sequenceNumber },
      kind === 'weights'
        ? { type: 'save-state', description: `${kind}/${name}`, ...(ttlSeconds === null ? {} : { ttlSeconds }) }
        : { type: 'save-weights', merge: false, description: `${kind}/${name}`, ttlSeconds },
    );
    await repository.addSave({
      operation_id: record.id,
      model_id: modelId,
      kind,
      name,
      user_metadata: JSON.stringify(userMetadata),
      created_at_ms: clock.now(),
    });
    return record;
  }

  /** @throws `sequence_conflict` for the name of a save that is there, or on its way */
  async #checkFree(path: SavePath): Promise<void> {
    const { repository, service } = this.#options;
    for (const { operation_id } of await repository.savesAt(path)) {
      const view = await service.operationById(operation_id, { waitMs: 0 }).catch(() => undefined);
      const isOpen = view?.status === 'Pending' || view?.status === 'InProgress';
      if (isOpen || (await this.#versionOf(operation_id)) !== undefined) {
        throw complaint({
          code: 'sequence_conflict',
          field: 'path',
          expected: 'a name that is free, or overwrite',
          got: `${savePath(path)}, which is there already`,
          remedy: 'choose another name, delete that one first, or save with overwrite=True',
        });
      }
    }
  }

  async #versionOf(operationId: string): Promise<Version | undefined> {
    return this.#options.registry.ofOperation(this.#options.workspaceId, operationId);
  }

  /** The newest save of a path. @throws `unknown_version` */
  async #find(path: SavePath): Promise<Found> {
    for (const row of await this.#options.repository.savesAt(path)) {
      const version = await this.#versionOf(row.operation_id);
      if (version !== undefined) return { row, version };
    }
    throw complaint({
      code: 'unknown_version',
      field: 'path',
      expected: 'a saved version',
      got: `${savePath(path).slice(0, 300)}, which is not there (any more)`,
      remedy: 'list the checkpoints to see which there are',
    });
  }

  /** @throws `unknown_version` */
  async resolve(path: SavePath): Promise<Version> {
    return (await this.#find(path)).version;
  }

  /** @throws `unknown_version` */
  async checkpoint(path: SavePath): Promise<SavedCheckpoint> {
    return checkpointOf(await this.#find(path));
  }

  /** Newest first, those of a part alone where one is given. Saves that others went over are left out. */
  async list(filter: SaveListFilter = {}, part?: Part): Promise<SavedCheckpoint[]> {
    const { database } = this.#options;
    return (await listSaves(database, this.#filter(filter), part)).map(listedCheckpoint);
  }

  /** How many `list` has without a part. */
  async count(filter: SaveListFilter = {}): Promise<number> {
    return countSaves(this.#options.database, this.#filter(filter));
  }

  #filter(filter: SaveListFilter): SaveFilter {
    const { workspaceId, clock } = this.#options;
    return { ...filter, workspaceId, nowMs: clock.now() };
  }

  /** Deletes the save of a path, and those that it went over. @throws `unknown_version` */
  async delete(path: SavePath): Promise<void> {
    const { registry, repository, workspaceId } = this.#options;
    await this.#find(path);
    for (const { operation_id } of await repository.savesAt(path)) {
      const version = await this.#versionOf(operation_id);
      if (version !== undefined) await registry.delete(workspaceId, version.id);
    }
  }

  /** @throws `unknown_version` */
  async expireAfter(path: SavePath, ttlSeconds: number | null): Promise<void> {
    const { registry, workspaceId, clock } = this.#options;
    const { version } = await this.#find(path);
    const expiresAtMs = ttlSeconds === null ? null : clock.now() + ttlSeconds * 1000;
    await registry.change(workspaceId, version.id, { expiresAtMs });
  }

  /** @throws `unknown_version`; `sequence_conflict` when it is so already */
  async publish(path: SavePath, isPublic: boolean): Promise<void> {
    const { row } = await this.#find(path);
    if ((row.is_public === 1) === isPublic) {
      throw complaint({
        code: 'sequence_conflict',
        field: 'path',
        expected: isPublic ? 'one that is not published' : 'one that is published',
        got: 'another',
        remedy: 'nothing is to be done: it is so already',
      });
    }
    await this.#options.repository.publish(row.operation_id, isPublic);
  }

  /** Removes saves that others went over. */
  async deleteReplaced(): Promise<void> {
    const { database, registry, workspaceId } = this.#options;
    for (const id of await replacedVersions(database, this.#filter({}))) await registry.delete(workspaceId, id);
  }
}

function listedCheckpoint(save: ListedSave): SavedCheckpoint {
  return {
    path: pathOf(save),
    createdAtMs: save.saved_at_ms,
    sizeBytes: save.size_bytes,
    isPublic: save.is_public === 1,
    expiresAtMs: save.expires_at_ms,
    userMetadata: JSON.parse(save.user_metadata),
  };
}

function checkpointOf({ row, version }: Found): SavedCheckpoint {
  return {
    path: pathOf(row),
    createdAtMs: version.createdAtMs,
    sizeBytes: version.sizeBytes,
    isPublic: row.is_public === 1,
    expiresAtMs: version.expiresAtMs,
    userMetadata: JSON.parse(row.user_metadata),
  };
}
