/** The two models of an evaluation: a saved version, and what its training began with. */
import type { SamplingClient, VersionDetail } from '@loopwright/client';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import { nameOf } from '../registry/list.js';

export interface EvaluatedModel {
  /** As people call it: `group/number`, or the base model's. */
  readonly name: string;
  /** By which a request names it: the ARN of a version, or the base model's id. */
  readonly id: string;
  readonly baseModel: string;
  readonly sampler: SamplingClient;
}

/** What a version is compared with. */
export interface StartModel extends EvaluatedModel {
  /** Its training began there: the base model, or a version that it came from. Only by such a comparison does one say what training did. */
  readonly isStart: boolean;
}

/** The part of a service that finds models. */
export interface ModelSource {
  readonly registry: {
    get(version: string): Promise<Pick<VersionDetail, 'id' | 'baseModel' | 'groupName' | 'number'>>;
    /** The version, its parent, and so on. */
    lineage(version: string): Promise<readonly Pick<VersionDetail, 'id'>[]>;
  };
  createSamplingClient(options: {
    readonly baseModel?: string;
    readonly modelPackageArn?: string;
  }): Promise<SamplingClient>;
}

/** @param version group/number, or an ARN @throws `unknown_version` */
export async function versionModel(service: ModelSource, version: string): Promise<EvaluatedModel> {
  const detail = await service.registry.get(version);
  const { id, baseModel } = detail;
  return { name: nameOf(detail), id, baseModel, sampler: await service.createSamplingClient({ modelPackageArn: id }) };
}

/**
 * What a version is compared with: another version, a base model, or by default its own base. Of another base it would read the prompts by other token
 * ids, and itself it equals, so that both are refused.
 *
 * @throws `invalid_argument` for another base model, and for the version itself; what the server says
 */
export async function startModel(
  service: ModelSource,
  against: string | undefined,
  { id, baseModel }: Pick<EvaluatedModel, 'id' | 'baseModel'>,
): Promise<StartModel> {
  if (against !== undefined && (against.startsWith('arn:') || (await isVersion(service, against)))) {
    const other = await service.registry.get(against);
    if (other.id === id) throw itself(nameOf(other));
    if (other.baseModel !== baseModel) throw otherBase(baseModel, `a version of ${other.baseModel}`);
    const [, ...ancestors] = await service.registry.lineage(id);
    return { ...(await versionModel(service, against)), isStart: ancestors.some((one) => one.id === other.id) };
  }
  const name = against ?? baseModel;
  if (name !== baseModel) throw otherBase(baseModel, name);
  const sampler = await service.createSamplingClient({ baseModel: name });
  return { name, id: name, baseModel: name, sampler, isStart: true };
}

function itself(name: string): Error {
  return complaint({
    field: 'against',
    expected: 'another version than the one that is judged',
    got: name,
    remedy: 'name what it started from, or leave --against out: then that is its base model',
  });
}

function otherBase(baseModel: string, got: string): Error {
  return complaint({
    field: '--against',
    expected: `${baseModel}, or another version of it`,
    got,
    remedy: 'name a version of the same base model; one of another reads the prompts by other tokens',
  });
}

/** Names on the hub have a slash too. */
async function isVersion(service: ModelSource, name: string): Promise<boolean> {
  if (!/^[^/]+\/[1-9]\d*$/.test(name)) return false;
  try {
    await service.registry.get(name);
    return true;
  } catch (error) {
    if (LoopwrightError.isInstance(error) && error.code === 'unknown_version') return false;
    throw error;
  }
}
