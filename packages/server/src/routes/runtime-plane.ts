/** Runtime plane of the SageMaker wire: submitting operations, asking for their results, cancelling them. */
import { complaint, type OperationResults, type SamplingOperation, type TrainingOperation } from '@loopwright/protocol';
import {
  arnMap,
  decodeClientToken,
  decodeSamplingRequest,
  decodeTrainingHeader,
  decodeTrainingRequest,
  encodeFailure,
  encodeSamplingResult,
  encodeTrainingResult,
  encodeUnfinished,
  headers,
  holdSeconds,
  type ResultBody,
  runtimeRoutes,
  type SamplingResult,
  type TrainingRequest,
  type TrainingResult,
} from '@loopwright/wires/sagemaker';
import type { Context } from 'hono';
import type { OperationRecord } from '../operations/operation-record.js';
import type { OperationView } from '../sessions/operation-view.js';
import type { SessionService } from '../sessions/session-service.js';
import { clientGone } from './client-gone.js';
import type { App, RouteEnv } from './context.js';
import { readJson } from './read-body.js';

/** Between versions and their ARNs, for both planes. */
export const arns: ReturnType<typeof arnMap> = arnMap();

export interface RuntimePlaneOptions {
  readonly service: SessionService;
  /** As the option of the server. */
  readonly saveTtlSeconds: number | null;
}

export function runtimePlane(app: App, { service, saveTtlSeconds }: RuntimePlaneOptions): void {
  app.post(runtimeRoutes.executeTraining.path, async (c) => {
    const name = c.req.param('name');
    const trainer = c.req.header(headers.trainer);
    const body = await readJson(c);
    const { operation, ...submission } = await decodeOrSpend(service, name, body);
    const expires = operation.type === 'save-weights' && operation.ttlSeconds === null && trainer === undefined;
    const record = await service.submitTraining(
      name,
      { ...submission, ...(trainer === undefined ? {} : { trainer: trainer.slice(0, 128) }) },
      expires ? { ...operation, ttlSeconds: saveTtlSeconds } : operation,
    );
    c.var.ids.operationId = record.id;
    return c.json({ operationId: record.id });
  });

  // Answers with the id; to who offers to wait, also with how the operation stands then.
  app.post(runtimeRoutes.executeSampling.path, async (c) => {
    const waitMs = holdMs(c);
    const request = decodeSamplingRequest(await readJson(c), { arns });
    const token = c.req.header(headers.samplingToken);
    const options = token === undefined ? {} : { clientToken: decodeClientToken(token, headers.samplingToken) };
    if (waitMs === undefined) {
      const { id } = await service.submitSampling(c.req.param('name'), request, options);
      c.var.ids.operationId = id;
      return c.json({ operationId: id });
    }
    const view = await service.sample(c.req.param('name'), request, { ...options, waitMs, signal: clientGone(c) });
    c.var.ids.operationId = view.record.id;
    return c.json({ operationId: view.record.id, ...encodeView(view) });
  });

  const kinds = [
    ['training', runtimeRoutes.trainingResult.path],
    ['sampling', runtimeRoutes.samplingResult.path],
  ] as const;
  for (const [kind, path] of kinds) {
    app.get(path, async (c) => {
      const options = { kind, waitMs: holdMs(c) ?? holdSeconds.default * 1000, signal: clientGone(c) };
      return c.json(encodeView(await service.operation(c.req.param('name'), c.req.param('operationId'), options)));
    });
    app.delete(path, async (c) =>
      c.json(encodeView(await service.cancel(c.req.param('name'), c.req.param('operationId'), kind))),
    );
  }
}

/** A submission whose number is well-formed uses that number up, even if the rest is refused. */
async function decodeOrSpend(service: SessionService, name: string, body: unknown): Promise<TrainingRequest> {
  try {
    return decodeTrainingRequest(body, { arns });
  } catch (error) {
    const sequenceNumber = numberOf(body);
    if (sequenceNumber !== undefined) await service.spend(name, sequenceNumber);
    throw error;
  }
}

function numberOf(body: unknown): number | undefined {
  const given = typeof body === 'object' && body !== null && 'sequenceNumber' in body ? body.sequenceNumber : undefined;
  try {
    return decodeTrainingHeader({ sequenceNumber: given }).sequenceNumber;
  } catch {
    return undefined;
  }
}

/** How long a request may be held; undefined where it does not say. @throws `invalid_argument` */
function holdMs(c: Context<RouteEnv>): number | undefined {
  const header = c.req.header(headers.waitSeconds);
  if (header === undefined) return undefined;
  const given = /^\d{1,4}(\.\d{1,6})?$/.test(header) ? Number(header) : Number.NaN;
  if (given >= 0 && given <= holdSeconds.max) return given * 1000;
  throw complaint({
    field: headers.waitSeconds,
    expected: `a number of seconds from 0 to ${holdSeconds.max}`,
    got: `${header.length} characters`,
  });
}

function encodeView(view: OperationView): ResultBody {
  switch (view.status) {
    case 'Pending':
    case 'InProgress':
      return encodeUnfinished(view.status, view.progress);
    case 'Failed':
    case 'Skipped':
      return encodeFailure(view.status, view.error);
    case 'Completed':
      return encodeCompleted(view.record, view.done);
    default:
      return view satisfies never;
  }
}

function encodeCompleted(
  record: OperationRecord,
  { type, result }: { type: string; result: OperationResults[keyof OperationResults] },
): ResultBody {
  // true twice: `done` was decoded for the type of this record, and training records hold training types
  return record.kind === 'training'
    ? encodeTrainingResult({ type: type as TrainingOperation['type'], result } as TrainingResult, { arns })
    : encodeSamplingResult({ type: type as SamplingOperation['type'], result } as SamplingResult);
}
