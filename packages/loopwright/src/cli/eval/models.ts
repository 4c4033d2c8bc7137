/** The two models of an evaluation: a saved version, and what its training began with. */
import type { SamplingClient } from '@loopwright/client';
import type { ServiceConnection } from '../../connect.js';
import { nameOf } from '../registry/list.js';

export interface EvaluatedModel {
  /** As people call it: `group/number`, or the base model's. */
  readonly name: string;
  /** By which a request names it: the ARN of a version, or the base model's id. */
  readonly id: string;
  readonly baseModel: string;
  readonly sampler: SamplingClient;
}

/** @param version group/number, or an ARN @throws `unknown_version` */
export async function versionModel(service: ServiceConnection, version: string): Promise<EvaluatedModel> {
  const detail = await service.registry.get(version);
  const { id, baseModel } = detail;
  return { name: nameOf(detail), id, baseModel, sampler: await service.createSamplingClient({ modelPackageArn: id }) };
}

/** What a version is compared with: another version, a base model, or by default its own base. */
export async function startModel(
  service: ServiceConnection,
  against: string | undefined,
  baseModel: string,
): Promise<EvaluatedModel> {
  if (against !== undefined && (against.startsWith('arn:') || (await isVersion(service, against))))
    return versionModel(service, against);
  const name = against ?? baseModel;
  return { name, id: name, baseModel: name, sampler: await service.createSamplingClient({ baseModel: name }) };
}

/** Names on the hub have a slash too. */
async function isVersion(service: ServiceConnection, name: string): Promise<boolean> {
  if (!/^[^/]+\/[1-9]\d*$/.test(name)) return false;
  const known = await service.registry.get(name).catch(() => undefined);
  return known !== undefined;
}
