/** Steps, saves, loads and new models: request bodies into what the service is asked for. */
import { type AdamParams, complaint, type TargetModule, type TrainingSpec } from '@loopwright/protocol';
import {
  booleanAt,
  describeValue,
  integerAt,
  isObject,
  type JsonObject,
  numberAt,
  objectAt,
  optional,
  refuseOtherKeys,
  stringAt,
} from '../checks.js';
import { adamDefaults, adamRanges, loraDefaults, ttlRange } from './defaults.js';
import { decodeTurn, type ModelTurn } from './forward-backward.js';
import { parseSavePath, type SaveKind, type SavePath, saveNameAt } from './names.js';

const adamKeys = {
  learningRate: 'learning_rate',
  beta1: 'beta1',
  beta2: 'beta2',
  eps: 'eps',
  weightDecay: 'weight_decay',
  gradClipNorm: 'grad_clip_norm',
} as const satisfies Record<keyof typeof adamDefaults, string>;

/** @throws `invalid_argument` for other optimizers, unknown parameters and numbers out of range */
export function decodeAdam(body: JsonObject): AdamParams {
  if (body.optimizer_params !== undefined && body.optimizer_params !== null)
    onlyAdamW(body.optimizer_params, 'optimizer_params');
  const given = objectAt(body.adam_params ?? {}, 'adam_params');
  refuseOtherKeys(given, Object.values(adamKeys), 'adam_params');
  const read = (name: keyof typeof adamKeys) => {
    const key = adamKeys[name];
    return numberAt(given[key] ?? adamDefaults[name], `adam_params.${key}`, adamRanges[name]);
  };
  return {
    learningRate: read('learningRate'),
    beta1: read('beta1'),
    beta2: read('beta2'),
    eps: read('eps'),
    weightDecay: read('weightDecay'),
    gradClipNorm: read('gradClipNorm'),
    loraPlusLrRatio: 1,
  };
}

/** Of the optimizers that a client may name, the one that there is. @throws `invalid_argument` for others */
function onlyAdamW(value: unknown, field: string): void {
  if (value === undefined || value === null) return;
  const { type } = objectAt(value, field);
  if (type === 'adamw') return;
  throw complaint({
    field: `${field}.type`,
    expected: 'adamw',
    got: describeValue(type),
    remedy: 'use the default optimizer',
  });
}

export interface NewModelRequest {
  readonly sessionId: string;
  readonly number: number;
  readonly baseModel: string;
  readonly training: TrainingSpec;
  readonly seed: number | undefined;
  readonly userMetadata: JsonObject;
}

/** @throws `invalid_argument` */
export function decodeNewModel(value: unknown): NewModelRequest {
  const body = objectAt(value, 'body');
  onlyAdamW(body.optimizer_config, 'optimizer_config');
  const lora = objectAt(body.lora_config ?? {}, 'lora_config');
  const seed = optional(lora, 'seed', 'lora_config', (item, at) =>
    integerAt(item, at, { min: -(2 ** 53 - 1), max: 2 ** 53 - 1 }),
  );
  return {
    ...slotOf(body),
    baseModel: stringAt(body.base_model, 'base_model', { min: 1, max: 1024 }),
    training: trainingOf(lora),
    seed,
    userMetadata: isObject(body.user_metadata) ? body.user_metadata : {},
  };
}

/** The place of a model in its session. */
function slotOf(body: JsonObject): { readonly sessionId: string; readonly number: number } {
  return {
    sessionId: stringAt(body.session_id, 'session_id', { min: 1, max: 64 }),
    number: integerAt(body.model_seq_id, 'model_seq_id', { min: 0, max: 999_999_999 }),
  };
}

/** What each flag of a LoRA config adapts. */
const modulesOf = {
  train_attn: ['q_proj', 'k_proj', 'v_proj', 'o_proj'],
  train_mlp: ['gate_proj', 'up_proj', 'down_proj'],
  train_unembed: ['lm_head'],
} as const satisfies Record<string, readonly TargetModule[]>;
export type TrainFlag = keyof typeof modulesOf;
const trainFlags = Object.keys(modulesOf) as readonly TrainFlag[]; // true: the keys of that table

function trainingOf(lora: JsonObject): TrainingSpec {
  const rank =
    optional(lora, 'rank', 'lora_config', (item, at) => integerAt(item, at, { min: 1, max: 256 })) ?? loraDefaults.rank;
  const targetModules = trainFlags.flatMap((flag): readonly TargetModule[] =>
    (optional(lora, flag, 'lora_config', booleanAt) ?? true) ? modulesOf[flag] : [],
  );
  if (targetModules.length === 0) {
    throw complaint({
      field: 'lora_config',
      expected: 'at least one of train_attn, train_mlp, train_unembed true',
      got: 'none',
    });
  }
  return { type: 'lora', rank, alpha: loraDefaults.alpha, targetModules };
}

/** Which flags an adapter was made with. */
export function trainFlagsOf(training: TrainingSpec): Record<TrainFlag, boolean> {
  const targets: readonly string[] = training.type === 'lora' ? training.targetModules : [];
  const has = (flag: TrainFlag) => training.type === 'full' || modulesOf[flag].every((name) => targets.includes(name));
  return { train_attn: has('train_attn'), train_mlp: has('train_mlp'), train_unembed: has('train_unembed') };
}

export interface SaveRequest extends ModelTurn {
  readonly kind: SaveKind;
  /** Absent: weights for a sampler of their own, without a name. */
  readonly name: string | undefined;
  readonly ttlSeconds: number | null;
  readonly overwrite: boolean;
  readonly userMetadata: JsonObject;
}

/** @throws `invalid_argument` */
export function decodeSave(value: unknown, kind: SaveKind): SaveRequest {
  const body = objectAt(value, 'body');
  const turn = decodeTurn(body);
  if (body.kind === 'inflight') {
    throw complaint({
      field: 'kind',
      expected: 'snapshot',
      got: 'inflight',
      remedy: 'take a new sampling client after each step',
    });
  }
  if (Array.isArray(body.age_encryption_recipients) && body.age_encryption_recipients.length > 0) {
    throw complaint({
      field: 'age_encryption_recipients',
      expected: 'none: files are given out as they are',
      got: 'some',
    });
  }
  const given = optional(body, 'path', 'body', (item) => saveNameAt(item, 'path'));
  const name = given ?? (kind === 'sampler_weights' ? undefined : `checkpoint-${turn.sequenceNumber}`);
  return {
    ...turn,
    kind,
    name,
    ttlSeconds: decodeTtl(body),
    overwrite: optional(body, 'overwrite', 'body', booleanAt) ?? false,
    userMetadata: isObject(body.user_metadata) ? body.user_metadata : {},
  };
}

/** Seconds to live; null for ever. @throws `invalid_argument` */
export function decodeTtl(body: JsonObject): number | null {
  return optional(body, 'ttl_seconds', 'body', (item) => integerAt(item, 'ttl_seconds', ttlRange)) ?? null;
}

/** A load into a model that is there, or (`create`) the making of one. */
export type LoadRequest =
  | ({ readonly type: 'load'; readonly path: SavePath; readonly optimizer: boolean } & ModelTurn)
  | {
      readonly type: 'create';
      readonly sessionId: string;
      readonly number: number;
      readonly path: SavePath;
      readonly optimizer: boolean;
      readonly userMetadata: JsonObject;
    };

/** @throws `invalid_argument`; `unknown_version` for what can't be a path */
export function decodeLoad(value: unknown): LoadRequest {
  const body = objectAt(value, 'body');
  onlyAdamW(body.optimizer_config, 'optimizer_config');
  const path = parseSavePath(body.path, 'path');
  const optimizer = optional(body, 'optimizer', 'body', booleanAt) ?? false;
  if (body.model_id !== undefined && body.model_id !== null)
    return { type: 'load', ...decodeTurn(body), path, optimizer };
  const userMetadata = isObject(body.user_metadata) ? body.user_metadata : {};
  return { type: 'create', ...slotOf(body), path, optimizer, userMetadata };
}
