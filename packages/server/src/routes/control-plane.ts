/** Control plane of the SageMaker wire: one handler per action of `POST /` with `X-Amz-Target`. */
import { isDeepStrictEqual } from 'node:util';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import {
  type ControlAction,
  type ControlRequest,
  type ControlResponse,
  controlActionOf,
  controlActions,
  controlContentType,
  defaultModelPackageGroup,
  encodeCreateTrainingSession,
  groupNameOf,
  type HubContentSummary,
  modelHubArn,
  modelPackageGroupArn,
  publicHub,
  sessionArn,
  sessionRequest,
  type TrainingSessionDetail,
} from '@loopwright/wires/sagemaker';
import { decodeControlRequest } from '@loopwright/wires/sagemaker/server';
import type { InstalledModel, ModelRegistry } from '../models/model-registry.js';
import type { Registry } from '../registry/registry.js';
import type { SessionRecord, WirePolicy } from '../sessions/session-record.js';
import type { SessionService } from '../sessions/session-service.js';
import type { App } from './context.js';
import { pageOf, seconds } from './control-requests.js';
import { type HubNames, hubVersion } from './hub-names.js';
import { modelPackageHandlers } from './model-packages.js';
import { readJson } from './read-body.js';

export interface ControlPlaneOptions {
  readonly service: SessionService;
  readonly registry: Registry;
  readonly models: ModelRegistry;
  readonly hub: HubNames;
  readonly workspaceId: string;
  /** What this wire does at gaps and after failed passes. */
  readonly policy: WirePolicy;
  readonly startedAtMs: number;
}

type Handlers = { readonly [A in ControlAction]: (request: ControlRequest<A>) => Promise<ControlResponse<A>> };

export function controlPlane(app: App, options: ControlPlaneOptions): void {
  const handlers = handlersOf(options);
  const dispatch = async <A extends ControlAction>(action: A, body: unknown): Promise<ControlResponse<A>> =>
    handlers[action](decodeControlRequest(action, body));
  app.post('/', async (c) => {
    const target = c.req.header('x-amz-target');
    const action = controlActionOf(target);
    if (action === undefined) {
      throw complaint({
        field: 'X-Amz-Target',
        expected: `SageMaker. and one of ${controlActions.join(', ')}`,
        got: target === undefined ? 'no such header' : `a target of ${target.length} characters`,
      });
    }
    c.var.ids.action = action;
    const answer = await dispatch(action, await readJson(c));
    return c.body(JSON.stringify(answer), 200, { 'content-type': controlContentType });
  });
}

function handlersOf({
  service,
  registry,
  models,
  hub,
  workspaceId,
  policy,
  startedAtMs,
}: ControlPlaneOptions): Handlers {
  const summaryOf = (model: InstalledModel): HubContentSummary => ({
    HubContentName: hub.nameOf(model.id),
    HubContentArn: hub.arnOf(model.id),
    HubContentVersion: hubVersion,
    HubContentType: 'Model',
    DocumentSchemaVersion: '2.3.0',
    HubContentStatus: 'Available',
    CreationTime: seconds(startedAtMs),
    HubContentSearchKeywords: [
      '@capability:training_session',
      '@recipe:finetuning_mtrl_lora',
      `@huggingface-id:${model.id}`,
    ],
  });
  return {
    CreateTrainingSession: async (request) => {
      const { name, baseModel, training, seed, modelPackageGroupArn: group } = sessionRequest(request);
      const { TrainingSessionName: _, ...echo } = request;
      try {
        await service.create({
          name,
          baseModel: (await hub.find(baseModel.name)).id,
          training,
          ...(seed === undefined ? {} : { seed }),
          groupName: group === undefined ? defaultModelPackageGroup : groupNameOf(group),
          echo,
          policy,
        });
      } catch (error) {
        const isTaken = LoopwrightError.isInstance(error) && error.code === 'session_exists';
        if (!isTaken || !isRepetition(await service.session(name), echo)) throw error;
      }
      return { TrainingSessionArn: sessionArn(name) };
    },
    DescribeTrainingSession: async ({ TrainingSessionName }) => {
      const session = await service.session(TrainingSessionName);
      const echo = echoOf(session, hub.arnOf(session.spec.baseModel));
      return { TrainingSessionDetail: detailOf(session, await service.usage(session), echo) };
    },
    ListTrainingSessions: async (request) => {
      const { items, next } = await service.list(
        {
          ...(request.NameContains === undefined ? {} : { nameContains: request.NameContains }),
          ...(request.StatusEquals === undefined ? {} : { status: request.StatusEquals }),
          ...(request.CreationTimeAfter === undefined ? {} : { createdAfterMs: request.CreationTimeAfter * 1000 }),
          ...(request.CreationTimeBefore === undefined ? {} : { createdBeforeMs: request.CreationTimeBefore * 1000 }),
        },
        pageOf(request),
      );
      const summaries = items.map((session) => ({
        TrainingSessionArn: sessionArn(session.name),
        TrainingSessionStatus: session.status,
        CreationTime: seconds(session.createdAtMs),
        LastModifiedTime: seconds(session.modifiedAtMs),
      }));
      return { TrainingSessionSummaries: summaries, ...(next === undefined ? {} : { NextToken: next }) };
    },
    StopTrainingSession: async ({ TrainingSessionName }) => {
      await service.stop(TrainingSessionName);
      return {};
    },
    DeleteTrainingSession: async ({ TrainingSessionName }) => {
      await service.delete(TrainingSessionName);
      return {};
    },
    ListHubContents: async ({ HubName, NameContains }) => {
      checkHub(HubName);
      const found = (await models.list()).map(summaryOf);
      const named = found.filter(({ HubContentName }) => HubContentName.includes(NameContains ?? ''));
      return { HubContentSummaries: named };
    },
    DescribeHubContent: async ({ HubName, HubContentName }) => {
      checkHub(HubName);
      const model = await hub.find(HubContentName);
      await models.card(model.id);
      return {
        ...summaryOf(model),
        HubName: publicHub,
        HubArn: modelHubArn(),
        HubContentDocument: JSON.stringify({ HuggingfaceId: hub.huggingfaceId(model.id) }),
      };
    },
    ...modelPackageHandlers({ service, registry, hub, workspaceId }),
  };
}

/** Whether a creation is the one that made the session, come again because its answer was lost. */
function isRepetition(
  session: SessionRecord,
  echo: Pick<ControlRequest<'CreateTrainingSession'>, 'Loopwright'>,
): boolean {
  const isNamed = echo.Loopwright?.ClientToken !== undefined;
  return isNamed && isDeepStrictEqual(session.echo, JSON.parse(JSON.stringify(echo)));
}

/** What CreateTrainingSession was given; of a session of another wire, what would have made it. */
function echoOf({ name, spec, echo }: SessionRecord, baseModelArn: string): Partial<TrainingSessionDetail> {
  if (echo.wire === undefined) return echo; // true: what CreateTrainingSession stored above
  const { training, seed } = spec;
  const trained = training.type === 'none' ? ({ type: 'full' } as const) : training;
  const { Loopwright, ...request } = encodeCreateTrainingSession({ name, baseModelArn, training: trained, seed });
  return training.type === 'none' || Loopwright === undefined ? request : { ...request, Loopwright };
}

function detailOf(
  session: SessionRecord,
  usage: Awaited<ReturnType<SessionService['usage']>>,
  echo: Partial<TrainingSessionDetail>,
): TrainingSessionDetail {
  return {
    TrainingSessionArn: sessionArn(session.name),
    TrainingSessionName: session.name,
    TrainingSessionStatus: session.status,
    CreationTime: seconds(session.createdAtMs),
    LastModifiedTime: seconds(session.modifiedAtMs),
    ...(session.endedAtMs === null ? {} : { EndTime: seconds(session.endedAtMs) }),
    ...(session.error === null
      ? {}
      : { ErrorDetails: session.error.message.slice(0, 1024), LoopwrightError: session.error.toJSON() }),
    LastReceivedSequenceNumber: session.lastSequenceNumber,
    BillableTokenUsage: {
      PrefillTokenCount: usage.prefillTokens,
      SampleTokenCount: usage.sampleTokens,
      TrainingTokenCount: usage.trainingTokens,
    },
    ModelPackageGroupArn: modelPackageGroupArn(session.groupName),
    ...echo,
  };
}

function checkHub(name: string): void {
  if (name === publicHub || name === modelHubArn()) return;
  throw complaint({
    code: 'not_found',
    field: 'HubName',
    expected: publicHub,
    got: `a name of ${name.length} characters`,
  });
}
