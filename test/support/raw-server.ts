/** The HTTP interface by hand: what a test of the server itself sends, without a client that tries again. */

export interface RawAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface RawRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** Where a result is asked for. */
export type RawKind = 'operations' | 'sampling-operations';

const modelArn = 'arn:aws:sagemaker:self-hosted-1:aws:hub-content/SageMakerPublicHub/Model/';

export class RawServer {
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  async send({ method = 'POST', path, headers = {}, body, signal }: RawRequest): Promise<RawAnswer> {
    const answer = await fetch(this.url + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, body: text === '' ? {} : JSON.parse(text) };
  }

  control(action: string, body: object = {}): Promise<RawAnswer> {
    return this.send({ path: '/', headers: { 'x-amz-target': `SageMaker.${action}` }, body });
  }

  /** Creates a session of rank 2 and waits until it runs. */
  async createSession(name: string, model: string): Promise<void> {
    const answer = await this.control('CreateTrainingSession', {
      TrainingSessionName: name,
      RoleArn: 'arn:aws:iam::000000000000:role/loopwright',
      OutputConfig: { S3Location: { Path: 's3://bucket/prefix' } },
      LoraConfig: { Rank: 2, Alpha: 4 },
      ModelConfig: { BaseModelArn: modelArn + model },
      Loopwright: { Seed: 1 },
    });
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
    while ((await this.detail(name)).TrainingSessionStatus !== 'Running') {
      await new Promise((resolve) => setTimeout(resolve, 20)); // the model loads; nothing tells when it has
    }
  }

  async detail(name: string): Promise<Readonly<Record<string, unknown>>> {
    const { body } = await this.control('DescribeTrainingSession', { TrainingSessionName: name });
    const detail = body.TrainingSessionDetail as Record<string, unknown>; // true: what this action answers with
    if (detail.TrainingSessionStatus === 'Failed') throw new Error(JSON.stringify(detail));
    return detail;
  }

  submit(name: string, kind: RawKind, body: object, signal?: AbortSignal): Promise<RawAnswer> {
    return this.send({ path: `/v1/training-sessions/${name}/${kind}`, body, ...(signal && { signal }) });
  }

  /** One held question for a result. */
  poll(name: string, kind: RawKind, id: string, waitSeconds = 20): Promise<RawAnswer> {
    return this.send({
      method: 'GET',
      path: `/v1/training-sessions/${name}/${kind}/${id}`,
      headers: { 'x-loopwright-wait-seconds': String(waitSeconds) },
    });
  }

  /** Asks until it has ended. */
  async result(name: string, kind: RawKind, id: string): Promise<Readonly<Record<string, unknown>>> {
    for (;;) {
      const { status, body } = await this.poll(name, kind, id);
      if (status !== 200) throw new Error(`HTTP ${status}: ${JSON.stringify(body)}`);
      if (body.status !== 'Pending' && body.status !== 'InProgress') return body;
    }
  }
}

export interface SampleOptions {
  readonly prompt?: readonly number[];
  readonly numSamples?: number;
  readonly maxTokens?: number;
  readonly seed?: number;
}

export function sampleBody({ prompt = [5, 6, 7], numSamples = 1, maxTokens = 1, seed = 1 }: SampleOptions = {}) {
  const sample = {
    prompt: { chunks: [{ type: 'encoded_text', tokens: prompt }] },
    numSamples,
    samplingParams: { maxTokens, seed },
  };
  return { operationConfig: { sample } };
}

/** A pass of cross entropy over rows of so many tokens. */
export function passBody(
  sequenceNumber: number,
  { rows = 1, tokens = 3, type = 'forwardBackward' }: Partial<{ rows: number; tokens: number; type: string }> = {},
) {
  const ids = Array.from({ length: tokens }, (_, i) => 3 + ((i * 7 + sequenceNumber) % 90));
  const tensor = (data: readonly number[], dtype: string) => ({ data, dtype, shape: [tokens] });
  const datum = {
    modelInput: { chunks: [{ type: 'encoded_text', tokens: ids }] },
    lossFnInputs: { target_tokens: tensor(ids, 'int64'), weights: tensor(new Array(tokens).fill(1), 'float32') },
  };
  const pass = { lossFnName: 'cross_entropy', datumList: new Array(rows).fill(datum) };
  return { sequenceNumber, operationConfig: { [type]: pass } };
}

export function stepBody(sequenceNumber: number) {
  return { sequenceNumber, operationConfig: { optimizerStep: { adamParamsConfig: { learningRate: 1e-3 } } } };
}
