/** A server without a socket over a temporary directory and a fake engine, with the calls that the tests make. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TrainingOperation } from '@loopwright/protocol';
import { FakeEngine } from '@loopwright/testkit';
import { encodeTrainingRequest, headers, hubContentArn, placeholders } from '@loopwright/wires/sagemaker';
import { openService, type ServerOptions } from '../main.js';
import { arns } from '../routes/runtime-plane.js';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

/** Any JSON object, read member by member. */
export interface Body {
  readonly [key: string]: unknown;
}

export interface ResultBody extends Body {
  readonly status: string;
  readonly errorDetails?: string;
  readonly operationResult?: Readonly<Record<string, Body>>;
  readonly loopwright?: {
    readonly state?: string;
    readonly waitingFor?: string;
    readonly position?: number;
    readonly error?: { readonly code: string; readonly message: string };
  };
}

export interface TestServer {
  readonly engine: FakeEngine;
  readonly dataDir: string;
  readonly modelDir: string;
  /** An answer as it is, for what is no JSON. */
  fetch(path: string): Promise<Response>;
  control(action: string, body?: unknown): Promise<Answer>;
  request(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** As the application answers. */
  raw(path: string): Promise<Response>;
  createSession(name: string, extra?: Body): Promise<void>;
  /** Until the session has this status. */
  status(name: string, wanted: string): Promise<Body>;
  detail(name: string): Promise<Body>;
  submit(name: string, sequenceNumber: number, operation: TrainingOperation, clientToken?: string): Promise<Answer>;
  train(name: string, sequenceNumber: number, operation: TrainingOperation): Promise<ResultBody>;
  sample(name: string, config?: Body): Promise<string>;
  submitSample(name: string, config?: Body, clientToken?: string): Promise<Answer>;
  result(
    name: string,
    id: string,
    kind?: 'operations' | 'sampling-operations',
    waitSeconds?: number,
  ): Promise<ResultBody>;
  sweep(): Promise<void>;
  close(): Promise<void>;
}

export type TestServerOptions = Partial<ServerOptions> & { readonly engine?: FakeEngine };

export function makeModelDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'loopwright-model-'));
  const config = {
    model_type: 'llama',
    vocab_size: 64,
    hidden_size: 16,
    num_hidden_layers: 2,
    num_attention_heads: 2,
    intermediate_size: 32,
    max_position_embeddings: 128,
  };
  writeFileSync(join(directory, 'config.json'), JSON.stringify(config));
  writeFileSync(join(directory, 'tokenizer.json'), '{"version":"1.0"}');
  writeFileSync(join(directory, 'model.safetensors'), 'weights');
  mkdirSync(join(directory, 'secret'));
  return directory;
}

export async function openTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const engine = options.engine ?? new FakeEngine();
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'loopwright-server-'));
  const modelDir = options.models?.[0]?.directory ?? makeModelDirectory();
  let seed = 100;
  const service = await openService({
    dataDir,
    models: [{ id: 'fake-model', directory: modelDir }],
    engineFactory: async () => engine,
    stopGraceMs: 200,
    drawSeed: () => seed++,
    ...options,
  });

  const request: TestServer['request'] = async (method, path, body, extra = {}) => {
    const answer = await service.app.request(path, {
      method,
      headers: { 'content-type': 'application/json', ...extra },
      ...(body === undefined
        ? {}
        : { body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, body: text === '' ? {} : (JSON.parse(text) as Body) }; // true: every answer is an object
  };
  const control: TestServer['control'] = (action, body = {}) =>
    request('POST', '/', body, { 'x-amz-target': `SageMaker.${action}` });
  const expectOk = (answer: Answer): Answer => {
    if (answer.status !== 200) throw new Error(`HTTP ${answer.status}: ${JSON.stringify(answer.body)}`);
    return answer;
  };
  const runtime = `/v1/training-sessions`;

  const server: TestServer = {
    engine,
    dataDir,
    modelDir,
    fetch: async (path) => service.app.request(path),
    control,
    request,
    raw: async (path) => service.app.request(path),
    createSession: async (name, extra = {}) => {
      const creation = {
        TrainingSessionName: name,
        RoleArn: placeholders.RoleArn,
        OutputConfig: placeholders.OutputConfig,
        LoraConfig: { Rank: 8, Alpha: 16 },
        ModelConfig: { BaseModelArn: hubContentArn({ name: 'fake-model', version: '1.0.0' }) },
        Loopwright: { Seed: 1 },
        ...extra,
      };
      expectOk(await control('CreateTrainingSession', creation));
      await server.status(name, 'Running');
    },
    detail: async (name) => {
      const { body } = expectOk(await control('DescribeTrainingSession', { TrainingSessionName: name }));
      return body.TrainingSessionDetail as Body; // true: the member that this action answers with
    },
    status: async (name, wanted) => {
      for (let tries = 0; tries < 500; tries++) {
        const detail = await server.detail(name);
        if (detail.TrainingSessionStatus === wanted) return detail;
        if (detail.TrainingSessionStatus === 'Failed') break;
        await new Promise((resolve) => setImmediate(resolve));
      }
      throw new Error(`session ${name} did not become ${wanted}: ${JSON.stringify(await server.detail(name))}`);
    },
    submit: (name, sequenceNumber, operation, clientToken) => {
      const given = { sequenceNumber, operation, ...(clientToken === undefined ? {} : { clientToken }) };
      return request('POST', `${runtime}/${name}/operations`, encodeTrainingRequest(given, { arns }));
    },
    train: async (name, sequenceNumber, operation) => {
      const { body } = expectOk(await server.submit(name, sequenceNumber, operation));
      return server.result(name, String(body.operationId));
    },
    sample: async (name, config) => String(expectOk(await server.submitSample(name, config)).body.operationId),
    submitSample: (name, config = {}, clientToken) => {
      const sample = {
        prompt: { chunks: [{ type: 'encoded_text', tokens: [1, 2, 3] }] },
        numSamples: 2,
        samplingParams: { maxTokens: 4 },
        ...config,
      };
      const token = clientToken === undefined ? {} : { [headers.samplingToken]: clientToken };
      const body = { operationConfig: { sample } };
      return request('POST', `${runtime}/${name}/sampling-operations`, body, token);
    },
    result: async (name, id, kind = 'operations', waitSeconds = 20) => {
      const hold = { [headers.waitSeconds]: String(waitSeconds) };
      const { body } = expectOk(await request('GET', `${runtime}/${name}/${kind}/${id}`, undefined, hold));
      return body as ResultBody; // true: what this route answers with
    },
    sweep: service.sweep,
    close: service.close,
  };
  return server;
}
