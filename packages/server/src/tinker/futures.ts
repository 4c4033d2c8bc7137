/** Results of what was accepted: asked for by an id, held for a while, given again as often as they are asked for. */
import {
  complaint,
  LoopwrightError,
  type OptimStepResult,
  type PassResult,
  type SampleResult,
  type WireError,
} from '@loopwright/protocol';
import {
  encodeFailure,
  encodePassJson,
  encodePassProto,
  encodeSampleJson,
  encodeSampleProto,
  holdSeconds,
  type JsonObject,
  savePath,
} from '@loopwright/wires/tinker';
import type { Clock } from '../clock.js';
import type { OperationRecord } from '../operations/operation-record.js';
import type { OperationView } from '../sessions/operation-view.js';
import type { SessionService } from '../sessions/session-service.js';
import type { TinkerModels } from './models.js';
import { modelIdOf, sessionNameOf } from './names.js';
import { pathOf, type TinkerRepository } from './repository.js';

export interface TinkerFuturesOptions {
  readonly service: SessionService;
  readonly repository: TinkerRepository;
  readonly models: TinkerModels;
  readonly clock: Clock;
}

export interface Retrieval {
  /** Whether the client reads protobuf. */
  readonly proto: boolean;
  readonly signal: AbortSignal;
}

/** JSON, or the bytes of a message. */
export type FutureBody = JsonObject | Uint8Array;

/** Prefixes of the ids of what is no operation. */
const prefixes = { model: 'model.', unload: 'unload.', refusal: 'refusal.' } as const;

export const modelFuture = (modelId: string): string => `${prefixes.model}${modelId}`;
export const unloadFuture = (modelId: string): string => `${prefixes.unload}${modelId}`;

/** The result of what was taken only to say at once why it can't be done: it travels in the id. */
export function refusalFuture(error: LoopwrightError): string {
  const { code, message, details } = error;
  return `${prefixes.refusal}${Buffer.from(JSON.stringify({ code, message, details })).toString('base64url')}`;
}

export class TinkerFutures {
  readonly #options: TinkerFuturesOptions;

  constructor(options: TinkerFuturesOptions) {
    this.#options = options;
  }

  /** @throws `unknown_operation` */
  async retrieve(id: string, retrieval: Retrieval): Promise<FutureBody> {
    const after = (prefix: string) => (id.startsWith(prefix) ? id.slice(prefix.length) : undefined);
    const model = after(prefixes.model);
    if (model !== undefined) return this.#model(id, model, retrieval);
    const unloaded = after(prefixes.unload);
    if (unloaded !== undefined) return this.#unloaded(id, unloaded);
    const refusal = after(prefixes.refusal);
    if (refusal !== undefined) return encodeFailure(refusalOf(refusal));
    return this.#operation(id, retrieval);
  }

  async #operation(id: string, { proto, signal }: Retrieval): Promise<FutureBody> {
    const view = await this.#options.service.operationById(id, { waitMs: holdSeconds * 1000, signal });
    return this.#encode(id, view, proto);
  }

  async #encode(id: string, view: OperationView, proto: boolean): Promise<FutureBody> {
    switch (view.status) {
      case 'Pending':
      case 'InProgress':
        return tryAgain(id, view.progress.waitingFor);
      case 'Failed':
      case 'Skipped':
        return encodeFailure(view.error);
      case 'Completed':
        return this.#result(view.record, view.done, proto);
      default:
        return view satisfies never;
    }
  }

  async #result(
    record: OperationRecord,
    done: Extract<OperationView, { status: 'Completed' }>['done'],
    proto: boolean,
  ): Promise<FutureBody> {
    const { service, repository } = this.#options;
    switch (done.type) {
      case 'forward':
      case 'forward-backward': {
        const operation = await service.payload(record);
        const data = operation.type === done.type ? operation.data : [];
        const shape = { lengths: data.map(({ modelInput }) => modelInput.length) };
        const result: PassResult = done.result;
        return proto ? encodePassProto(result, shape) : encodePassJson(result, shape);
      }
      case 'sample': {
        const result: SampleResult = done.result;
        return proto ? encodeSampleProto(result) : encodeSampleJson(result);
      }
      case 'optim-step':
        return { metrics: stepMetrics(done.result), type: 'optim_step' };
      case 'save-state':
      case 'save-weights': {
        const save = await repository.saveOfOperation(record.id);
        if (save !== undefined) return { path: savePath(pathOf(save)) };
        const sampler = await repository.samplerOfOperation(record.id);
        return { path: null, sampling_session_id: sampler?.id ?? null };
      }
      case 'load-state': {
        const model = modelIdOf(await service.nameOf(record));
        return { model_id: model ?? null, type: 'load_weights' };
      }
      case 'compute-logprobs':
      case 'load-weights':
        throw complaint({
          code: 'unknown_operation',
          field: 'request_id',
          expected: 'one of this wire',
          got: done.type,
        });
      default:
        return done satisfies never;
    }
  }

  /** A model that is being made, and then begins from a saved version where it was asked to. */
  async #model(id: string, model: string, retrieval: Retrieval): Promise<FutureBody> {
    const { service, models } = this.#options;
    const started = await this.#within(service.whenStarted(sessionNameOf(model)));
    if (started === undefined || started.status === 'Created' || started.status === 'Scheduled') {
      return tryAgain(id, 'the base model to load');
    }
    if (started.error !== null && started.status === 'Failed') return encodeFailure(started.error);
    const load = await models.firstLoad(started);
    if (load === undefined) return { model_id: model, type: 'create_model' };
    const body = await this.#operation(load.record.id, { ...retrieval, proto: false });
    if (body instanceof Uint8Array || 'error' in body) return body;
    if (body.type === 'try_again') return { ...body, request_id: id };
    return { path: load.path, model_id: model, type: 'load_weights' };
  }

  async #unloaded(id: string, model: string): Promise<FutureBody> {
    const ended = await this.#within(this.#options.service.stopped(sessionNameOf(model)).then(() => true));
    return ended === undefined ? tryAgain(id, 'running work to end') : { model_id: model, type: 'unload_model' };
  }

  /** Undefined when it takes longer than a request is held. */
  async #within<T>(work: Promise<T>): Promise<T | undefined> {
    let cancel = () => {};
    const limit = new Promise<undefined>((resolve) => {
      cancel = this.#options.clock.after(holdSeconds * 1000, () => resolve(undefined));
    });
    try {
      return await Promise.race([work, limit]);
    } finally {
      cancel();
    }
  }
}

/** The client asks again at once; it shows what holds its work up. */
function tryAgain(id: string, waitingFor: string | undefined): JsonObject {
  return {
    type: 'try_again',
    request_id: id,
    queue_state: waitingFor === undefined ? 'active' : 'paused_capacity',
    ...(waitingFor === undefined ? {} : { queue_state_reason: `waiting for ${waitingFor}` }),
  };
}

/** Without values that JSON has no word for, which the SDK refuses. */
function stepMetrics({ step, gradNorm, metrics }: OptimStepResult): Record<string, number> {
  const all = { ...metrics, 'optim/step': step, 'optim/grad_norm': gradNorm };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => Number.isFinite(value)));
}

function refusalOf(text: string): LoopwrightError {
  try {
    return LoopwrightError.fromJSON(JSON.parse(Buffer.from(text, 'base64url').toString()) as WireError); // true: written by refusalFuture, or refused there
  } catch (cause) {
    throw complaint({
      code: 'unknown_operation',
      field: 'request_id',
      expected: 'one of this server',
      got: 'another',
      cause,
    });
  }
}
