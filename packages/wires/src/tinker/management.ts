/** Runs, saved versions and samplers as the REST client and the `tinker` command read them. */
import type { TrainingSpec } from '@loopwright/protocol';
import type { JsonObject } from '../checks.js';
import { type SaveKind, type SavePath, savePath } from './names.js';
import { trainFlagsOf } from './training.js';

/** As each kind is called in listings. */
const checkpointTypes = {
  weights: 'training',
  sampler_weights: 'sampler',
  external_weights: 'external',
} as const satisfies Record<SaveKind, string>;

export interface SavedCheckpoint {
  readonly path: SavePath;
  readonly createdAtMs: number;
  readonly sizeBytes: number;
  readonly isPublic: boolean;
  readonly expiresAtMs: number | null;
  readonly userMetadata: JsonObject;
}

export function encodeCheckpoint(checkpoint: SavedCheckpoint): JsonObject {
  const { path, createdAtMs, sizeBytes, isPublic, expiresAtMs, userMetadata } = checkpoint;
  return {
    checkpoint_id: `${path.kind}/${path.name}`,
    checkpoint_type: checkpointTypes[path.kind],
    time: new Date(createdAtMs).toISOString(),
    tinker_path: savePath(path),
    size_bytes: sizeBytes,
    public: isPublic,
    expires_at: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString(),
    user_metadata: texts(userMetadata),
  };
}

export interface TrainingRun {
  readonly modelId: string;
  readonly baseModel: string;
  readonly training: TrainingSpec;
  readonly isFailed: boolean;
  readonly activeAtMs: number;
  readonly userMetadata: JsonObject;
  readonly lastCheckpoint: SavedCheckpoint | undefined;
  readonly lastSamplerCheckpoint: SavedCheckpoint | undefined;
}

export function encodeTrainingRun(run: TrainingRun): JsonObject {
  const { training, lastCheckpoint, lastSamplerCheckpoint } = run;
  return {
    training_run_id: run.modelId,
    base_model: run.baseModel,
    model_owner: 'local',
    is_lora: training.type === 'lora',
    lora_rank: training.type === 'lora' ? training.rank : null,
    corrupted: run.isFailed,
    last_request_time: new Date(run.activeAtMs).toISOString(),
    last_checkpoint: lastCheckpoint === undefined ? null : encodeCheckpoint(lastCheckpoint),
    last_sampler_checkpoint: lastSamplerCheckpoint === undefined ? null : encodeCheckpoint(lastSamplerCheckpoint),
    user_metadata: texts(run.userMetadata),
  };
}

/** weights_info: what a model that takes these weights has to be made like. */
export function encodeWeightsInfo(baseModel: string, training: TrainingSpec): JsonObject {
  return {
    base_model: baseModel,
    is_lora: training.type === 'lora',
    lora_rank: training.type === 'lora' ? training.rank : null,
    ...trainFlagsOf(training),
  };
}

/** Metadata whose values are all text, as the SDK demands; null where there is none. */
export function texts(metadata: JsonObject): Record<string, string> | null {
  const entries = Object.entries(metadata).filter(([, value]) => value !== undefined && value !== null);
  if (entries.length === 0) return null;
  return Object.fromEntries(
    entries.map(([key, value]) => [key, typeof value === 'string' ? value : JSON.stringify(value)]),
  );
}
