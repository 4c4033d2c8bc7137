/** Answers of our own routes, as the OpenAPI document tells of them; the compiler holds them to the types that the routes answer with. */
import {
  approvalStatuses,
  type ErrorCode,
  errorCatalogue,
  type ModelCard,
  samplerPaths,
  type TokenUsage,
  type TrainingSpec,
  targetModules,
  type VersionGroup,
  versionKinds,
  versionStates,
  type WireError,
} from '@loopwright/protocol';
import * as z from 'zod';
import type { GroupList, VersionDetail, VersionPage } from './registry.js';
import type { UsageLine } from './usage.js';

const count = z.int().min(0);
const time = z.int().describe('ms since 1970');
const codes = Object.keys(errorCatalogue) as [ErrorCode, ...ErrorCode[]]; // true: the catalogue has rows, each by its code

export const wireError = z.object({
  code: z.enum(codes),
  message: z.string(),
  details: z.record(z.string(), z.unknown()).describe('`field`, `expected`, `got`, `remedy` and what else helps.'),
  request_id: z.string().exactOptional(),
}) satisfies z.ZodType<WireError>;

export const health = z.object({
  status: z.literal('ok'),
  version: z.string(),
  uptimeSeconds: z.number().min(0),
  node: z.string().exactOptional().describe('This and `engines` only for callers with the key.'),
  engines: z
    .array(
      z.object({
        model: z.string(),
        state: z.enum(['loading', 'ready', 'failed']),
        incarnation: z.string().exactOptional(),
        error: z.string().exactOptional(),
      }),
    )
    .exactOptional(),
});

const servedModel = z.object({
  id: z.string().describe('What `model` may say.'),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
  root: z.string(),
  parent: z.string().nullable(),
  loopwright: z.object({ kind: z.enum(['base', 'session', 'version']) }),
});
const modelCard = z.object({
  id: z.string(),
  architecture: z.string(),
  contextLength: count,
  vocabSize: count,
  parameters: count,
}) satisfies z.ZodType<Omit<ModelCard, 'directory'>>;
export const modelList = z.object({
  object: z.literal('list'),
  data: z.array(servedModel).describe('All that answers: base models, live sessions, saved versions.'),
  models: z
    .array(z.union([modelCard, z.object({ id: z.string(), error: wireError })]))
    .describe('Base models, each with its card or why it can’t be read.'),
});

const tokens = { prefillTokens: count, sampleTokens: count, trainingTokens: count } satisfies Record<
  keyof TokenUsage,
  z.ZodType
>;
const usageLine = z.object({
  baseModel: z.string(),
  session: z.object({ id: z.string(), name: z.string() }).exactOptional(),
  operationType: z.string().exactOptional(),
  operations: count,
  ...tokens,
  firstAtMs: time,
  lastAtMs: time,
}) satisfies z.ZodType<UsageLine>;
export const usage = z.object({ usage: z.array(usageLine) });

export const trace = z.object({
  operations: z.array(
    z.object({
      operationId: z.string(),
      kind: z.enum(['training', 'sampling']),
      type: z.string(),
      sequenceNumber: z.int().exactOptional(),
      startedAtMs: z.number(),
      endedAtMs: z.number().nullable(),
      slices: z.array(z.object({ atMs: z.number(), done: z.number() })),
    }),
  ),
});

const tags = z.record(z.string(), z.string());
export const versionGroup = z.object({
  name: z.string(),
  description: z.string(),
  tags,
  createdAtMs: time,
  versions: count.describe('Available ones.'),
  latest: z.int().nullable().describe('Number of the newest available one.'),
}) satisfies z.ZodType<VersionGroup>;
export const groupList = z.object({ groups: z.array(versionGroup) }) satisfies z.ZodType<GroupList>;

const training = z.union([
  z.object({
    type: z.literal('lora'),
    rank: z.int(),
    alpha: z.number(),
    targetModules: z.array(z.enum(targetModules)),
    samplerPath: z.exactOptional(z.enum(samplerPaths).describe('How it is sampled from; absent: apart.')),
  }),
  z.object({ type: z.literal('full') }),
]) satisfies z.ZodType<TrainingSpec>;
const lineage = z.object({
  sessionId: z.string(),
  sessionName: z.string(),
  operationId: z.string().describe('The save.'),
  step: count.describe('Optimizer steps behind it.'),
  parent: z.string().nullable().describe('ARN of the version from which its session was loaded.'),
  data: z
    .object({ digest: z.string().nullable(), passes: count, datums: count, tokens: count })
    .nullable()
    .describe('What was trained between it and its parent.'),
});
const version = z.object({
  id: z.string().describe('An ARN.'),
  groupName: z.string(),
  number: z.int().min(1),
  kind: z.enum(versionKinds),
  state: z.enum(versionStates),
  description: z.string(),
  tags,
  approval: z.object({
    status: z.enum(approvalStatuses),
    note: z.string(),
    decidedAtMs: time.nullable().describe('Null while nobody has decided.'),
  }),
  baseModel: z.string(),
  training,
  lineage,
  sizeBytes: count,
  createdAtMs: time,
  expiresAtMs: time.nullable(),
  deletedAtMs: time.nullable(),
});
export const versionPage = z.object({
  versions: z.array(version),
  next: z.string().exactOptional(),
}) satisfies z.ZodType<VersionPage>;
export const versionDetail = version.extend({
  metrics: z.array(z.object({ name: z.string(), value: z.number(), note: z.string(), atMs: time })),
  files: z.array(z.object({ path: z.string(), sha256: z.string(), sizeBytes: count })),
}) satisfies z.ZodType<VersionDetail>;

export const nothing = z.object({});
export const openApi = z.looseObject({ openapi: z.literal('3.1.1') });
