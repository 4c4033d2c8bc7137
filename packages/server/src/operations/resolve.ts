/** From what a caller asked for to a complete operation: "latest" becomes a version, a missing seed is drawn, versions are looked up. */
import { randomInt } from 'node:crypto';
import {
  complaint,
  type SamplingOperation,
  type SamplingParams,
  type TrainingOperation,
  type TrainingSpec,
  type VersionId,
  type WeightsRef,
} from '@loopwright/protocol';
import type { Registry } from '../registry/registry.js';
import type { Version } from '../registry/version.js';
import { type SessionRecord, trainedSpec } from '../sessions/session-record.js';
import type { ResolvedInputs } from './operation-record.js';

/** Weights as a caller names them. */
export type WeightsChoice =
  | { readonly type: 'latest' }
  | { readonly type: 'base' }
  | { readonly type: 'version'; readonly id: VersionId };

type Sample = Extract<SamplingOperation, { type: 'sample' }>;
type ComputeLogprobs = Extract<SamplingOperation, { type: 'compute-logprobs' }>;

/** A sampling operation whose weights and seed are still to be fixed. */
export type SamplingRequest =
  | (Omit<Sample, 'weights' | 'params'> & {
      readonly weights: WeightsChoice;
      readonly params: Omit<SamplingParams, 'seed'> & { readonly seed?: number };
    })
  | (Omit<ComputeLogprobs, 'weights'> & { readonly weights: WeightsChoice })
  | Extract<SamplingOperation, { type: 'load-weights' }>;

export interface Resolved<O> {
  readonly operation: O;
  readonly resolved: Omit<ResolvedInputs, 'plan'>;
  readonly readsVersion: VersionId | null;
}

/** Draws a seed of 31 bits. */
export type DrawSeed = () => number;
export const randomSeed: DrawSeed = () => randomInt(2 ** 31);

/** @throws `unknown_version`, `checkpoint_mismatch`; `invalid_argument` for a session that only samples */
export async function resolveTraining(
  session: SessionRecord,
  operation: TrainingOperation,
  registry: Registry,
): Promise<Resolved<TrainingOperation>> {
  trainedSpec(session);
  if (operation.type === 'forward' || operation.type === 'forward-backward')
    return { operation, resolved: { datums: operation.data.length }, readsVersion: null };
  if (operation.type !== 'load-state') return { operation, resolved: {}, readsVersion: null };
  const { version: id, loadOptimizer } = operation;
  const version = await registry.get(session.workspaceId, id);
  checkBase(version, session);
  if (loadOptimizer && version.kind !== 'state') {
    throw mismatch(
      id,
      'a saved state, since the optimizer is asked for',
      `saved weights (${version.kind})`,
      'load it without the optimizer, or load a version that saveState made',
    );
  }
  const wanted = describeTraining(trainedSpec(session).training);
  const found = describeTraining(version.training);
  if (wanted !== found) {
    throw mismatch(
      id,
      `a version of a session with ${wanted}`,
      found,
      'create the session with the same rank, alpha and target modules',
    );
  }
  return { operation, resolved: { loadOptimizer }, readsVersion: id };
}

/** @throws `unknown_version`, `checkpoint_mismatch` */
export async function resolveSampling(
  session: SessionRecord,
  request: SamplingRequest,
  { registry, drawSeed }: { readonly registry: Registry; readonly drawSeed: DrawSeed },
): Promise<Resolved<SamplingOperation>> {
  if (request.type === 'load-weights') {
    checkBase(await registry.get(session.workspaceId, request.version), session);
    return { operation: request, resolved: {}, readsVersion: request.version };
  }
  const weights = await resolveWeights(session, request.weights, registry);
  const readsVersion = weights.type === 'version' ? weights.id : null;
  if (request.type === 'compute-logprobs') {
    return { operation: { ...request, weights }, resolved: { weights }, readsVersion };
  }
  const seed = request.params.seed ?? drawSeed();
  return {
    operation: { ...request, weights, params: { ...request.params, seed } },
    resolved: { weights, seed },
    readsVersion,
  };
}

async function resolveWeights(session: SessionRecord, choice: WeightsChoice, registry: Registry): Promise<WeightsRef> {
  if (choice.type === 'base') return choice;
  const id = choice.type === 'version' ? choice.id : session.samplerVersion;
  if (id === null) return { type: 'base' };
  checkBase(await registry.get(session.workspaceId, id), session);
  return { type: 'version', id };
}

function checkBase(version: Version, session: SessionRecord): void {
  if (version.baseModel === session.spec.baseModel) return;
  throw mismatch(
    version.id,
    `a version of ${session.spec.baseModel}`,
    `one of ${version.baseModel}`,
    'use a session on that base model',
  );
}

function mismatch(id: VersionId, expected: string, got: string, remedy: string) {
  return complaint({ code: 'checkpoint_mismatch', field: `version ${id}`, expected, got, remedy });
}

function describeTraining(training: TrainingSpec): string {
  if (training.type === 'full') return 'full-parameter training';
  const targets = [...training.targetModules].sort().join(', ');
  return `a LoRA adapter of rank ${training.rank}, alpha ${training.alpha}, on ${targets}`;
}
