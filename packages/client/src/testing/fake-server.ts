/** A server in memory that speaks the wire: enough of its rules to test a client against, and switches for what can go wrong. */
import { LoopwrightError, type SessionStatus } from '@loopwright/protocol';
import {
  arnMap,
  type ControlAction,
  type ControlRequest,
  type ControlResponses,
  controlActionOf,
  decodeSamplingRequest,
  decodeTrainingHeader,
  decodeTrainingRequest,
  encodeError,
  encodeFailure,
  encodeSamplingResult,
  encodeTrainingResult,
  encodeUnfinished,
  headers,
  hubContentArn,
  parseJson,
  type ResultBody,
  type SamplingRequest,
  sessionArn,
  type TrainingRequest,
} from '@loopwright/wires/sagemaker';
import { decodeControlRequest } from '@loopwright/wires/sagemaker/server';
import { samplingResult, trainingResult } from './fake-results.js';

const arns = arnMap();

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: string;
}

/** What becomes of a request before the server's own rules: an error to answer with, or a connection that breaks. */
export type Fault = LoopwrightError | 'lose-request' | 'lose-answer';

interface FakeOperation {
  body: ResultBody;
  readonly end: (body: ResultBody) => void;
  readonly ended: Promise<void>;
  /** Answers of "not yet" before a result request is held. */
  pendingAnswers: number;
}

interface FakeSession {
  status: SessionStatus;
  readonly numbers: Map<number, { readonly token: string | undefined; readonly payload: string; readonly id: string }>;
  readonly operations: Map<string, FakeOperation>;
  readonly token: string | undefined;
  readonly lora: ControlRequest<'CreateTrainingSession'>['LoraConfig'];
  versions: number;
}

export class FakeServer {
  readonly seen: SeenRequest[] = [];
  readonly training: TrainingRequest[] = [];
  readonly sampling: SamplingRequest[] = [];
  readonly sessions = new Map<string, FakeSession>();
  readonly files = new Map<string, string>();
  /** Looked at for every request; the first match is used up. */
  readonly faults: { readonly when: (request: SeenRequest) => boolean; readonly fault: Fault }[] = [];
  /** Statuses that describing tells one after the other, before what the session is in. */
  readonly startStatuses: SessionStatus[] = [];
  /** What an accepted operation does: an error fails it, `hold` leaves it open until {@link FakeServer.finish}. */
  onTraining: (request: TrainingRequest) => LoopwrightError | 'hold' | undefined = () => undefined;
  onSampling: (request: SamplingRequest) => LoopwrightError | 'hold' | undefined = () => undefined;
  /** "Not yet" answers per operation before the real one. */
  pendingAnswers = 0;
  /** Whether sampling submissions that offer to wait are answered with how they stand; other servers than ours do not. */
  holdsSubmissions = false;
  samplesOpen = 0;
  mostSamplesOpen = 0;
  readonly packages: ControlResponses['DescribeModelPackage'][] = [];
  readonly #held: { readonly finish: () => void }[] = [];

  readonly fetch: typeof fetch = async (input, init) => {
    const url = new URL(String(input));
    const request: SeenRequest = {
      method: init?.method ?? 'GET',
      path: url.pathname,
      headers: new Headers(init?.headers),
      body: typeof init?.body === 'string' ? init.body : '',
    };
    this.seen.push(request);
    const index = this.faults.findIndex(({ when }) => when(request));
    const fault = index < 0 ? undefined : this.faults.splice(index, 1)[0]?.fault;
    if (fault === 'lose-request') throw new TypeError('fetch failed');
    const plane = request.path === '/' ? 'control' : 'runtime';
    try {
      if (fault instanceof LoopwrightError) throw fault;
      const answer = await this.#answer(request, init?.signal ?? undefined);
      if (fault === 'lose-answer') throw new TypeError('fetch failed');
      return new Response(typeof answer === 'string' ? answer : JSON.stringify(answer));
    } catch (error) {
      if (!LoopwrightError.isInstance(error)) throw error;
      const { status, headers: own, body } = encodeError(error, { plane });
      return new Response(JSON.stringify(body), { status, headers: own });
    }
  };

  /** Ends the operations that were held, oldest first. */
  finish(): void {
    for (const { finish } of this.#held.splice(0)) finish();
  }

  requests(part: string): SeenRequest[] {
    return this.seen.filter((request) => request.path.includes(part) || request.headers.get('x-amz-target') === part);
  }

  get only(): FakeSession {
    const [session] = this.sessions.values();
    if (session === undefined) throw new Error('no session yet');
    return session;
  }

  async #answer(request: SeenRequest, signal: AbortSignal | undefined): Promise<unknown> {
    if (request.path === '/') {
      const action = controlActionOf(request.headers.get('x-amz-target'));
      if (action === undefined) throw new LoopwrightError({ code: 'not_found', message: 'no such action' });
      return this.#control(action, parseJson(request.body));
    }
    const file = this.files.get(request.path);
    if (file !== undefined) return file;
    const match = /^\/v1\/training-sessions\/([^/]+)\/(sampling-)?operations(?:\/([^/]+))?$/.exec(request.path);
    const session = this.sessions.get(match?.[1] ?? '');
    if (session === undefined) throw new LoopwrightError({ code: 'not_found', message: 'no such session or file' });
    const id = match?.[3];
    if (id !== undefined) return this.#result(session, id, request.method, signal);
    const body = parseJson(request.body);
    return match?.[2] === undefined
      ? this.#acceptTraining(session, body, request.body)
      : this.#acceptSampling(session, body, request.headers.has(headers.waitSeconds));
  }

  async #result(
    session: FakeSession,
    id: string,
    method: string,
    signal: AbortSignal | undefined,
  ): Promise<ResultBody> {
    const operation = session.operations.get(id);
    if (operation === undefined) throw new LoopwrightError({ code: 'unknown_operation', message: 'no such operation' });
    if (method === 'DELETE') {
      operation.end(
        encodeFailure('Failed', new LoopwrightError({ code: 'cancelled', message: 'the caller cancelled' })),
      );
      return operation.body;
    }
    if (operation.pendingAnswers > 0) {
      operation.pendingAnswers -= 1;
      return encodeUnfinished('Pending', {
        state: 'queued',
        waitingFor: 'operation 1 (forward-backward)',
        position: 1,
      });
    }
    await Promise.race([
      operation.ended,
      new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true })),
    ]);
    return operation.body;
  }

  #acceptTraining(session: FakeSession, body: unknown, payload: string): { operationId: string } {
    this.#checkActive(session);
    const { sequenceNumber, clientToken } = decodeTrainingHeader(body);
    const known = session.numbers.get(sequenceNumber);
    if (known !== undefined) {
      if (known.token === clientToken && known.payload === payload) return { operationId: known.id };
      throw new LoopwrightError({ code: 'sequence_conflict', message: `number ${sequenceNumber} is used` });
    }
    const before = Math.max(0, ...session.numbers.keys());
    if (sequenceNumber !== before + 1) throw new Error(`a gap: ${sequenceNumber} after ${before}`);
    const id = crypto.randomUUID();
    session.numbers.set(sequenceNumber, { token: clientToken, payload, id });
    const request = decodeTrainingRequest(body, { arns });
    this.training.push(request);
    const does = this.onTraining(request);
    const { operation } = request;
    const nextVersion = () => `sagemaker-default/${++session.versions}`;
    const finish = () => encodeTrainingResult(trainingResult(request, nextVersion), { arns });
    this.#open(session, id, does, finish, operation.type);
    return { operationId: id };
  }

  #acceptSampling(session: FakeSession, body: unknown, isHeld: boolean): { operationId: string } {
    this.#checkActive(session);
    const request = decodeSamplingRequest(body, { arns });
    this.sampling.push(request);
    const id = crypto.randomUUID();
    this.#open(session, id, this.onSampling(request), () => encodeSamplingResult(samplingResult(request)), 'sample');
    return { operationId: id, ...(isHeld && this.holdsSubmissions ? session.operations.get(id)?.body : {}) };
  }

  #open(
    session: FakeSession,
    id: string,
    does: LoopwrightError | 'hold' | undefined,
    result: () => ResultBody,
    type: string,
  ): void {
    let wake = () => {};
    const ended = new Promise<void>((resolve) => {
      wake = resolve;
    });
    if (type === 'sample') this.mostSamplesOpen = Math.max(this.mostSamplesOpen, ++this.samplesOpen);
    const operation: FakeOperation = {
      body: encodeUnfinished('Pending', { state: 'queued' }),
      end: (body) => {
        if (operation.body.status !== 'Pending') return;
        operation.body = body;
        if (type === 'sample') this.samplesOpen -= 1;
        wake();
      },
      ended,
      pendingAnswers: this.pendingAnswers,
    };
    session.operations.set(id, operation);
    if (does === 'hold') this.#held.push({ finish: () => operation.end(result()) });
    else operation.end(does === undefined ? result() : encodeFailure('Failed', does));
  }

  #checkActive(session: FakeSession): void {
    if (session.status !== 'Running')
      throw new LoopwrightError({ code: 'session_not_active', message: session.status });
  }

  #control<A extends ControlAction>(action: A, body: unknown): ControlResponses[ControlAction] {
    const handlers: { readonly [K in ControlAction]?: (body: unknown) => ControlResponses[K] } = {
      CreateTrainingSession: (raw) => {
        const {
          TrainingSessionName: name,
          LoraConfig: lora,
          Loopwright,
        } = decodeControlRequest('CreateTrainingSession', raw);
        const token = Loopwright?.ClientToken;
        const known = this.sessions.get(name);
        if (known !== undefined && known.token === token) return { TrainingSessionArn: sessionArn(name) };
        if (known !== undefined) throw new LoopwrightError({ code: 'session_exists', message: `${name} exists` });
        this.sessions.set(name, {
          status: 'Running',
          token,
          lora,
          numbers: new Map(),
          operations: new Map(),
          versions: 0,
        });
        return { TrainingSessionArn: sessionArn(name) };
      },
      DescribeTrainingSession: (raw) => {
        const { TrainingSessionName: name } = decodeControlRequest('DescribeTrainingSession', raw);
        const status = this.startStatuses.shift() ?? this.#session(name).status;
        return {
          TrainingSessionDetail: {
            TrainingSessionArn: sessionArn(name),
            TrainingSessionName: name,
            TrainingSessionStatus: status,
            CreationTime: 1_790_000_000,
            LoraConfig: this.#session(name).lora,
            ...(status === 'Failed' ? { ErrorDetails: 'the model did not load' } : {}),
          },
        };
      },
      StopTrainingSession: (raw) => {
        const session = this.#session(decodeControlRequest('StopTrainingSession', raw).TrainingSessionName);
        if (session.status === 'Stopped') {
          throw new LoopwrightError({ code: 'invalid_transition', message: 'invalid session state transition' });
        }
        session.status = 'Stopped';
        for (const operation of session.operations.values()) {
          operation.end(
            encodeFailure('Skipped', new LoopwrightError({ code: 'operation_skipped', message: 'stopped' })),
          );
        }
        return {};
      },
      DeleteTrainingSession: (raw) => {
        this.sessions.delete(decodeControlRequest('DeleteTrainingSession', raw).TrainingSessionName);
        return {};
      },
      ListTrainingSessions: (raw) => {
        const { NextToken: from = '0' } = decodeControlRequest('ListTrainingSessions', raw);
        const names = [...this.sessions.keys()];
        const next = Number(from) + 1;
        return {
          TrainingSessionSummaries: names.slice(Number(from), next).map((name) => ({
            TrainingSessionArn: sessionArn(name),
            TrainingSessionStatus: this.#session(name).status,
            CreationTime: 1_790_000_000,
          })),
          ...(next < names.length ? { NextToken: String(next) } : {}),
        };
      },
      ListHubContents: () => ({
        HubContentSummaries: [{ ...hubContent, HubContentSearchKeywords: ['@huggingface-id:loopwright/tiny'] }],
      }),
      DescribeHubContent: (raw) => {
        const { HubContentName: name } = decodeControlRequest('DescribeHubContent', raw);
        if (!['tiny', 'loopwright/tiny'].includes(name)) {
          throw new LoopwrightError({ code: 'unknown_model', message: `no model ${name}` });
        }
        return {
          ...hubContent,
          HubName: 'SageMakerPublicHub',
          HubArn: 'arn:aws:sagemaker:self-hosted-1:aws:hub/SageMakerPublicHub',
          HubContentDocument: JSON.stringify({ HuggingfaceId: 'loopwright/tiny' }),
        };
      },
      ListModelPackages: () => ({ ModelPackageSummaryList: this.packages }),
      DescribeModelPackage: (raw) => {
        const { ModelPackageName: arn } = decodeControlRequest('DescribeModelPackage', raw);
        const found = this.packages.find(({ ModelPackageArn }) => ModelPackageArn === arn);
        if (found === undefined) throw new LoopwrightError({ code: 'unknown_version', message: 'no such version' });
        return found;
      },
      DeleteModelPackage: (raw) => {
        const { ModelPackageName: arn } = decodeControlRequest('DeleteModelPackage', raw);
        const index = this.packages.findIndex(({ ModelPackageArn }) => ModelPackageArn === arn);
        if (index < 0) throw new LoopwrightError({ code: 'unknown_version', message: 'no such version' });
        this.packages.splice(index, 1);
        return {};
      },
    };
    const handler = handlers[action];
    if (handler === undefined) throw new LoopwrightError({ code: 'not_found', message: 'not in this fake' });
    return handler(body);
  }

  #session(name: string): FakeSession {
    const session = this.sessions.get(name);
    if (session === undefined) throw new LoopwrightError({ code: 'unknown_session', message: `no session ${name}` });
    return session;
  }
}

const hubContent = {
  HubContentName: 'tiny',
  HubContentArn: hubContentArn({ name: 'tiny', version: '1.0.0' }),
  HubContentVersion: '1.0.0',
  HubContentType: 'Model',
  DocumentSchemaVersion: '2.3.0',
  HubContentStatus: 'Available',
  CreationTime: 1_790_000_000,
} as const;
