/** Saved versions (model packages): listed, described, deleted. */
import { LoopwrightError } from '@loopwright/protocol';
import { defaultModelPackageGroup, type ModelPackage, type ModelPackageExtension } from '@loopwright/wires/sagemaker';
import { describeSession } from './sessions.js';
import type { CallOptions, ControlOptions, Transport } from './transport.js';

/** `state` can be resumed, `weights` can be sampled from. */
export type ModelPackageKind = 'state' | 'weights';

export interface ModelPackageInfo {
  readonly modelPackageArn: string;
  readonly kind: ModelPackageKind;
  /** From 1, in order of saving. */
  readonly version: number;
  readonly createdAtMs: number;
  readonly description: string;
  /** The session that saved it, where the server tells. */
  readonly sessionName?: string;
}

export interface ModelPackageFilter extends CallOptions {
  readonly kind?: ModelPackageKind;
  /** Name or ARN; default the group of sessions that name none. */
  readonly group?: string;
  /** Default 100. */
  readonly maxResults?: number;
}

export async function describeModelPackage(
  transport: Transport,
  arn: string,
  options: ControlOptions = {},
): Promise<ModelPackage> {
  return transport.control('DescribeModelPackage', { ModelPackageName: arn }, options);
}

/** Newest first. */
export async function listModelPackages(
  transport: Transport,
  { kind, group = defaultModelPackageGroup, maxResults = 100, signal }: ModelPackageFilter,
): Promise<ModelPackageInfo[]> {
  const found: ModelPackageInfo[] = [];
  let next: string | undefined;
  do {
    const page = await transport.control(
      'ListModelPackages',
      {
        ModelPackageGroupName: group,
        SortBy: 'CreationTime',
        SortOrder: 'Descending',
        MaxResults: Math.min(100, kind === undefined ? maxResults - found.length : 100),
        ...(next === undefined ? {} : { NextToken: next }),
      },
      { signal },
    );
    for (const summary of page.ModelPackageSummaryList) {
      const { ModelPackageArn: arn } = summary;
      const itsKind = summary.Loopwright?.Kind ?? kindOf(await describeModelPackage(transport, arn, { signal }));
      if (kind !== undefined && itsKind !== kind) continue;
      found.push({
        modelPackageArn: arn,
        kind: itsKind,
        version: summary.ModelPackageVersion,
        createdAtMs: summary.CreationTime * 1000,
        description: summary.ModelPackageDescription ?? '',
        ...(summary.Loopwright?.SessionName === undefined ? {} : { sessionName: summary.Loopwright.SessionName }),
      });
      if (found.length >= maxResults) return found;
    }
    next = page.NextToken;
  } while (next !== undefined);
  return found;
}

function kindOf(modelPackage: ModelPackage): ModelPackageKind {
  return modelPackage.InferenceSpecification.Containers[0].IsCheckpoint ? 'state' : 'weights';
}

/** @returns false when it was gone already */
export async function deleteModelPackage(
  transport: Transport,
  arn: string,
  options: CallOptions = {},
): Promise<boolean> {
  try {
    await transport.control('DeleteModelPackage', { ModelPackageName: arn }, options);
    return true;
  } catch (error) {
    if (LoopwrightError.isInstance(error) && error.code === 'unknown_version') return false;
    throw error;
  }
}

/** What a package was trained on and how: what a resume asks for again. */
export interface PackageOrigin {
  /** Name of the base model in the hub. */
  readonly hubContentName: string;
  readonly training: Omit<ModelPackageExtension, 'Kind' | 'SessionName'>;
}

/** From the package itself or, where its server does not tell, from the session that saved it while that is known. */
export async function packageOrigin(
  transport: Transport,
  modelPackage: ModelPackage,
  options: ControlOptions,
): Promise<PackageOrigin> {
  const [container] = modelPackage.InferenceSpecification.Containers;
  const hubContentName = container.BaseModel.HubContentName;
  const told = modelPackage.Loopwright;
  if (told?.TrainingType !== undefined || told?.SessionName === undefined)
    return { hubContentName, training: told ?? {} };
  try {
    const { LoraConfig: lora, Loopwright: extension } = await describeSession(transport, told.SessionName, options);
    return {
      hubContentName,
      training: {
        ...(extension?.TrainingType === undefined ? {} : { TrainingType: extension.TrainingType }),
        ...(extension?.TargetModules === undefined ? {} : { TargetModules: extension.TargetModules }),
        ...(extension?.SamplerPath === undefined ? {} : { SamplerPath: extension.SamplerPath }),
        ...(lora === undefined ? {} : lora),
      },
    };
  } catch (error) {
    if (LoopwrightError.isInstance(error) && error.code === 'unknown_session') return { hubContentName, training: {} };
    throw error;
  }
}
