/** The two models of an evaluation: a saved version, and what its training began with. */
import type { SamplingClient, VersionDetail } from '@loopwright/client';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import type { ServiceConnection } from '../../connect.js';
import { withPlaces } from '../../data-dirs.js';
import { placeOf } from '../../training/resume-place.js';
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

type NamedVersion = Pick<VersionDetail, 'id' | 'baseModel' | 'groupName' | 'number'>;

/** The part of a service that finds models. */
export interface ModelSource {
  readonly registry: {
    get(version: string): Promise<NamedVersion>;
    /** The version, its parent, and so on. */
    lineage(version: string): Promise<readonly Pick<VersionDetail, 'id'>[]>;
  };
  createSamplingClient(options: {
    readonly baseModel?: string;
    readonly modelPackageArn?: string;
  }): Promise<SamplingClient>;
}

/** Both models; a version that isn't there is told with where it was looked for. @throws as {@link versionModel} and {@link startModel} */
export async function evaluatedModels(
  service: ServiceConnection,
  version: string,
  against: string | undefined,
): Promise<{ readonly candidate: EvaluatedModel; readonly start: StartModel }> {
  try {
    const candidate = await versionModel(service, version);
    return { candidate, start: await startModel(service, against, candidate) };
  } catch (error) {
    throw withPlaces(error, { in: placeOf(service), others: await service.otherDataDirs() });
  }
}

/** @param version group/number, or an ARN @throws `unknown_version` */
export async function versionModel(service: ModelSource, version: string): Promise<EvaluatedModel> {
  return modelOf(service, await service.registry.get(version));
}

async function modelOf(service: ModelSource, version: NamedVersion): Promise<EvaluatedModel> {
  const { id, baseModel } = version;
  return { name: nameOf(version), id, baseModel, sampler: await service.createSamplingClient({ modelPackageArn: id }) };
}

/**
 * What a version is compared with: another version, a base model, or by default its own base. Of another base it would read the prompts by other token
 * ids, and itself it equals, so that both are refused.
 *
 * @throws `invalid_argument` for another base model, and for the version itself; `unknown_version`; what else the server says
 */
export async function startModel(
  service: ModelSource,
  against: string | undefined,
  { id, baseModel }: Pick<EvaluatedModel, 'id' | 'baseModel'>,
): Promise<StartModel> {
  const other = against === undefined ? undefined : await versionNamed(service, against, baseModel);
  if (other !== undefined) {
    if (other.id === id) throw itself(nameOf(other));
    if (other.baseModel !== baseModel) throw otherBase(baseModel, `a version of ${other.baseModel}`);
    const [, ...ancestors] = await service.registry.lineage(id);
    return { ...(await modelOf(service, other)), isStart: ancestors.some((one) => one.id === other.id) };
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

/** Undefined for the name of a base model: on the hub it has a slash too, and may end in a number. */
async function versionNamed(
  { registry }: ModelSource,
  name: string,
  baseModel: string,
): Promise<NamedVersion | undefined> {
  if (!name.startsWith('arn:') && !/^[^/]+\/[1-9]\d*$/.test(name)) return undefined;
  try {
    return await registry.get(name);
  } catch (error) {
    if (name === baseModel && LoopwrightError.isInstance(error) && error.code === 'unknown_version') return undefined;
    throw error;
  }
}
