/** Model packages and their groups on the control plane of the SageMaker wire: the registry, as far as that API tells of it. */
import type { ApprovalStatus, VersionGroup } from '@loopwright/protocol';
import {
  type ControlAction,
  type ControlRequest,
  type ControlResponse,
  groupNameOf,
  type ModelPackage,
  type ModelPackageExtension,
  type ModelPackageGroup,
  type ModelPackageSummary,
  modelPackageGroupArn,
  parsePackageArn,
  type TrainingSessionDetail,
  versionId,
} from '@loopwright/wires/sagemaker';
import { modelCardJson } from '../registry/model-card.js';
import type { Registry } from '../registry/registry.js';
import type { TagChange } from '../registry/tags.js';
import type { DescribedVersion, Version } from '../registry/version.js';
import type { SessionService } from '../sessions/session-service.js';
import { pageOf, seconds } from './control-requests.js';
import { type HubNames, hubVersion } from './hub-names.js';
import { arns } from './runtime-plane.js';

type PackageAction = Extract<ControlAction, `${string}ModelPackage${string}` | `${string}Tags`>;
type Handlers = { readonly [A in PackageAction]: (request: ControlRequest<A>) => Promise<ControlResponse<A>> };

export interface ModelPackageOptions {
  readonly service: SessionService;
  readonly registry: Registry;
  readonly hub: HubNames;
  readonly workspaceId: string;
}

export function modelPackageHandlers({ service, registry, hub, workspaceId }: ModelPackageOptions): Handlers {
  const idOf = (arn: string, field: string) => versionId(parsePackageArn(arn, field));
  const changeTags = async (arn: string, tags: TagChange) => {
    if (isGroup(arn)) return (await registry.groups.change(workspaceId, groupNameOf(arn), { tags })).tags;
    return (await registry.change(workspaceId, idOf(arn, 'ResourceArn'), { tags })).tags;
  };
  return {
    CreateModelPackageGroup: async ({ ModelPackageGroupName: name, ModelPackageGroupDescription, Tags = [] }) => {
      const description = ModelPackageGroupDescription ?? '';
      await registry.groups.create(workspaceId, { name, description, tags: tagsIn(Tags) });
      return { ModelPackageGroupArn: modelPackageGroupArn(name) };
    },
    DescribeModelPackageGroup: async ({ ModelPackageGroupName }) =>
      groupSummary(await registry.groups.get(workspaceId, groupNameOf(ModelPackageGroupName))),
    ListModelPackageGroups: async (request) => {
      const { CreationTimeAfter: after, CreationTimeBefore: before, NameContains: part = '' } = request;
      const found = (await registry.groups.list(workspaceId)).filter(
        ({ name, createdAtMs }) =>
          name.includes(part) &&
          (after === undefined || createdAtMs > after * 1000) &&
          (before === undefined || createdAtMs < before * 1000),
      );
      if (request.SortBy !== 'Name') found.sort((a, b) => a.createdAtMs - b.createdAtMs);
      const sorted = request.SortOrder === 'Descending' ? found.toReversed() : found;
      const { limit, after: token = '0' } = pageOf(request);
      const start = Number(token);
      const next = start + limit;
      return {
        ModelPackageGroupSummaryList: sorted.slice(start, next).map(groupSummary),
        ...(next < sorted.length ? { NextToken: String(next) } : {}),
      };
    },
    ListModelPackages: async (request) => {
      const { ModelPackageGroupName: group, ModelApprovalStatus: approval } = request;
      const { CreationTimeAfter: after, CreationTimeBefore: before } = request;
      const filter = {
        ...(group === undefined ? {} : { groupName: groupNameOf(group) }),
        ...(approval === undefined ? {} : { approval: { status: approval, undecided: ofNobody } }),
        ...(after === undefined ? {} : { createdAfterMs: after * 1000 }),
        ...(before === undefined ? {} : { createdBeforeMs: before * 1000 }),
        oldestFirst: request.SortOrder === 'Ascending',
      };
      const { items, next } = await registry.list(workspaceId, filter, pageOf(request));
      return { ModelPackageSummaryList: items.map(packageSummary), ...(next === undefined ? {} : { NextToken: next }) };
    },
    DescribeModelPackage: async ({ ModelPackageName }) => {
      const id = idOf(ModelPackageName, 'ModelPackageName');
      await registry.get(workspaceId, id);
      const version = await registry.describe(workspaceId, id);
      return packageDetail(version, hub.nameOf(version.baseModel), await outputPath(service, version));
    },
    UpdateModelPackage: async ({ ModelPackageArn, ModelApprovalStatus: status, ApprovalDescription: note }) => {
      const id = idOf(ModelPackageArn, 'ModelPackageArn');
      await registry.get(workspaceId, id);
      if (status !== undefined || note !== undefined) {
        const approval = { note: note ?? '', ...(status === undefined ? {} : { status }) };
        await registry.change(workspaceId, id, { approval });
      }
      return { ModelPackageArn: arns.toArn(id) };
    },
    DeleteModelPackage: async ({ ModelPackageName }) => {
      await registry.delete(workspaceId, idOf(ModelPackageName, 'ModelPackageName'));
      return {};
    },
    AddTags: async ({ ResourceArn, Tags }) => ({ Tags: tagList(await changeTags(ResourceArn, tagsIn(Tags))) }),
    ListTags: async ({ ResourceArn }) => ({ Tags: tagList(await changeTags(ResourceArn, {})) }),
    DeleteTags: async ({ ResourceArn, TagKeys }) => {
      await changeTags(ResourceArn, Object.fromEntries(TagKeys.map((key) => [key, null])));
      return {};
    },
  };
}

function isGroup(arn: string): boolean {
  return groupNameOf(arn) !== arn;
}

function tagsIn(tags: readonly { readonly Key: string; readonly Value: string }[]): Record<string, string> {
  return Object.fromEntries(tags.map(({ Key, Value }) => [Key, Value]));
}

function tagList(tags: Readonly<Record<string, string>>): { Key: string; Value: string }[] {
  return Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
}

function groupSummary({ name, description, createdAtMs }: VersionGroup): ModelPackageGroup {
  return {
    ModelPackageGroupArn: modelPackageGroupArn(name),
    ModelPackageGroupName: name,
    ...(description === '' ? {} : { ModelPackageGroupDescription: description }),
    CreationTime: seconds(createdAtMs),
    ModelPackageGroupStatus: 'Completed',
  };
}

/** The service answers so for its own saves: see decision 26. */
const ofNobody: ApprovalStatus = 'Approved';

function statusOf({ approval }: Version): ApprovalStatus {
  return approval.decidedAtMs === null ? ofNobody : approval.status;
}

function packageSummary(version: Version): ModelPackageSummary {
  return {
    ModelPackageArn: arns.toArn(version.id),
    ModelPackageGroupName: version.groupName,
    ModelPackageVersion: version.number,
    CreationTime: seconds(version.createdAtMs),
    ModelPackageStatus: 'Completed',
    ModelApprovalStatus: statusOf(version),
    ...(version.description === '' ? {} : { ModelPackageDescription: version.description }),
    Loopwright: extensionOf(version),
  };
}

/** What a resume asks for again is told with the version: its session may be gone by then. */
function extensionOf({ kind, training, lineage, expiresAtMs }: Version): ModelPackageExtension {
  return {
    Kind: kind === 'state' ? 'state' : 'weights',
    VersionKind: kind,
    SessionName: lineage.sessionName,
    TrainingType: training.type,
    ...(training.type === 'full'
      ? {}
      : {
          ...{ Rank: training.rank, Alpha: training.alpha, TargetModules: training.targetModules },
          ...(training.samplerPath === undefined ? {} : { SamplerPath: training.samplerPath }),
        }),
    ...(expiresAtMs === null ? {} : { ExpirationTime: seconds(expiresAtMs) }),
  };
}

const cardStatuses = { Approved: 'Approved', Rejected: 'Draft', PendingManualApproval: 'PendingReview' } as const;

function packageDetail(version: DescribedVersion, hubContentName: string, output: string): ModelPackage {
  const { lineage, approval, number, kind } = version;
  const location = `${output.replace(/\/+$/, '')}/${lineage.sessionName}/checkpoints/${number}/`;
  return {
    ...packageSummary(version),
    ModelPackageName: version.groupName,
    ModelPackageStatusDetails: { ValidationStatuses: [] },
    ModelApprovalStatus: statusOf(version),
    ...(approval.note === '' ? {} : { ApprovalDescription: approval.note }),
    ModelCard: { ModelCardContent: modelCardJson(version), ModelCardStatus: cardStatuses[statusOf(version)] },
    InferenceSpecification: {
      Containers: [
        {
          IsCheckpoint: kind === 'state',
          BaseModel: { HubContentName: hubContentName, HubContentVersion: hubVersion },
          ModelDataSource: {
            S3DataSource: { S3Uri: location, S3DataType: 'S3Prefix', CompressionType: 'None' },
          },
        },
      ],
    },
  };
}

/** The output location that the session was created with; it is only echoed. Sessions may be gone before their versions. */
async function outputPath(service: SessionService, { lineage }: Version): Promise<string> {
  const session = await service.session(lineage.sessionName).catch(() => undefined);
  const echo = (session?.id === lineage.sessionId ? session.echo : {}) as Partial<TrainingSessionDetail>; // true, as in detailOf
  return echo.OutputConfig?.S3Location.Path ?? 's3://loopwright';
}
