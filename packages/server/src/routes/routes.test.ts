/** The edges of the HTTP interface: keys, limits, ids, logs, errors, holding, the model hub. */
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../testing/manual-clock.js';
import { pass, step } from '../testing/operations.js';
import { openTestServer, type TestServer, type TestServerOptions } from '../testing/test-server.js';

const open: TestServer[] = [];
async function opened(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await openTestServer(options);
  open.push(server);
  return server;
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

describe('keys', () => {
  const key = 'a-secret-key';

  it('are asked for on every route but health, each refusal in the shape of its plane', async () => {
    const server = await opened({ apiKey: key });
    expect(await server.control('ListTrainingSessions')).toMatchObject({
      status: 403,
      body: { __type: 'AccessDeniedException', Message: expect.any(String), code: 'unauthenticated' },
    });
    const runtime = await server.request('GET', '/v1/training-sessions/s/operations/x');
    expect(runtime).toMatchObject({ status: 403, body: { code: 'unauthenticated' } });
    expect(runtime.headers.get('x-amzn-errortype')).toBe('AccessDeniedException');
    expect(await server.request('GET', '/v1/models')).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
    const health = await server.request('GET', '/health');
    expect(health.body).toMatchObject({ status: 'ok', version: expect.any(String) });
    expect(health.body).not.toHaveProperty('engines');
  });

  it.each([
    ['Bearer a-secret-key', 200],
    ['bearer  a-secret-key', 200],
    ['Bearer a-secret-kez', 401],
    ['Bearer a-secret-key2', 401],
    ['Basic a-secret-key', 401],
    [
      'AWS4-HMAC-SHA256 Credential=a-secret-key/20260101/r/sagemaker/aws4_request, SignedHeaders=host, Signature=0',
      401,
    ],
  ])('%s is answered with %i', async (authorization, status) => {
    const server = await opened({ apiKey: key });
    expect((await server.request('GET', '/v1/models', undefined, { authorization })).status).toBe(status);
  });
});

describe('a server without a key', () => {
  it.each([
    [{ origin: 'https://example.org' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: '' }, 403],
    [{ host: 'rebound.example.org:8080' }, 403],
    [{ host: '192.168.1.5:8080' }, 403],
    [{ origin: 'http://localhost:5173', host: '127.0.0.1:8080' }, 400],
    [{ host: '[::1]:8080' }, 400],
  ])('answers a request with %j with %i', async (headers, status) => {
    const server = await opened();
    expect((await server.request('POST', '/', {}, headers as Record<string, string>)).status).toBe(status);
  });
});

describe('a wire that is switched off', () => {
  it('is not there, and what belongs to no wire is', async () => {
    const server = await opened({ wires: [] });
    expect((await server.control('ListTrainingSessions')).body.code).toBe('not_found');
    expect((await server.request('GET', '/v1/training-sessions/s/operations/x')).status).toBe(404);
    expect((await server.request('GET', '/health')).status).toBe(200);
    expect((await server.request('GET', '/v1/models')).status).toBe(200);
  });
});

describe('bodies', () => {
  it('above the limit are refused before they are read', async () => {
    const server = await opened();
    const headers = { 'content-length': String(64 * 1024 * 1024 + 1) };
    expect(await server.request('POST', '/v1/training-sessions/s/operations', '{}', headers)).toMatchObject({
      status: 413,
      body: { __type: 'ValidationException', code: 'payload_too_large' },
    });
  });

  it('that grow above the limit without saying their length are refused as well', async () => {
    const server = await opened();
    const megabyte = ' '.repeat(1 << 20);
    expect(
      await server.request('POST', '/', megabyte.repeat(65), { 'x-amz-target': 'SageMaker.ListTrainingSessions' }),
    ).toMatchObject({
      status: 413,
      body: { code: 'payload_too_large', Message: expect.any(String) },
    });
  });

  it.each([
    ['nested too deep', `{"operationConfig":${'['.repeat(65)}`, 'nested 64 deep'],
    ['of too many parts', `[${'{},'.repeat(1_000_000)}{}]`, '1000000 objects'],
    ['in another encoding', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]), 'UTF-8'],
  ])('%s are refused before they are parsed', async (_, body, expected) => {
    const server = await opened();
    const answer = await server.request('POST', '/v1/training-sessions/s/operations', body);
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_argument', details: { field: 'body' } } });
    expect(JSON.stringify(answer.body)).toContain(expected);
  });

  it('that are no JSON are refused without quoting them', async () => {
    const server = await opened();
    const answer = await server.request('POST', '/v1/training-sessions/s/operations', '{"secret prompt');
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_argument' } });
    expect(JSON.stringify(answer.body)).not.toContain('secret');
  });
});

describe('every answer', () => {
  it('carries a request id, the given one where it is well-formed', async () => {
    const server = await opened();
    const given = await server.request('GET', '/health', undefined, { 'x-request-id': 'my-id_1' });
    expect(given.headers.get('x-request-id')).toBe('my-id_1');
    const odd = await server.request('GET', '/nothing', undefined, { 'x-request-id': 'a b' });
    expect(odd.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(odd).toMatchObject({
      status: 404,
      body: { code: 'not_found', request_id: odd.headers.get('x-request-id') },
    });
  });

  it('to an unknown route or action is an error in JSON', async () => {
    const server = await opened();
    expect(await server.request('GET', '/v1/training-sessions/s/nothing')).toMatchObject({
      status: 404,
      body: { __type: 'ResourceNotFoundException' },
    });
    expect(await server.control('MakeTea')).toMatchObject({ status: 400, body: { __type: 'ValidationException' } });
    expect(await server.request('POST', '/', {})).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('X-Amz-Target') },
    });
  });

  it('about what does not exist says so on every runtime route', async () => {
    const server = await opened();
    await server.createSession('s');
    await server.createSession('t');
    const id = String((await server.submit('t', 1, pass())).body.operationId);
    const missing = [
      await server.submit('none', 1, pass()),
      await server.request('GET', '/v1/training-sessions/none/operations/x'),
      await server.request('GET', `/v1/training-sessions/s/operations/${id}`),
      await server.request('GET', `/v1/training-sessions/t/sampling-operations/${id}`),
      await server.request('DELETE', `/v1/training-sessions/s/operations/${id}`),
    ];
    for (const answer of missing)
      expect(answer).toMatchObject({ status: 404, body: { __type: 'ResourceNotFoundException' } });
  });
});

describe('the limits of the model', () => {
  it('are checked at the submission, before any work', async () => {
    const server = await opened();
    await server.createSession('s');
    expect(await server.submit('s', 1, pass([1, 64]))).toMatchObject({
      status: 400,
      body: { code: 'invalid_argument', details: { field: 'datumList[0].modelInput[1]', got: '64' } },
    });
    expect(await server.submit('s', 2, pass(new Array(129).fill(1)))).toMatchObject({
      body: { code: 'context_length_exceeded', details: { got: '129' } },
    });
    const prompt = { chunks: [{ type: 'encoded_text', tokens: new Array(128).fill(1) }] };
    await expect(server.sample('s', { prompt })).rejects.toThrow('context_length_exceeded');
    expect(server.engine.calls.some((call) => call.startsWith('pass') || call.startsWith('sample'))).toBe(false);
  });
});

describe('a result request', () => {
  it('is held until the operation ends', async () => {
    const clock = new ManualClock();
    const server = await opened({ clock });
    await server.createSession('s');
    const hold = server.engine.hold('pass');
    const id = String((await server.submit('s', 1, pass())).body.operationId);
    await hold.entered;
    let answered = false;
    const held = server.result('s', id, 'operations', 50).then((result) => {
      answered = true;
      return result;
    });
    clock.advance(49_999);
    await new Promise((resolve) => setImmediate(resolve));
    expect(answered).toBe(false);
    hold.release();
    expect((await held).status).toBe('Completed');
  });

  it('is answered when its time is over: 2 s where it names none', async () => {
    const clock = new ManualClock();
    const server = await opened({ clock });
    await server.createSession('s');
    const hold = server.engine.hold('pass');
    const id = String((await server.submit('s', 1, pass())).body.operationId);
    await hold.entered;
    const path = `/v1/training-sessions/s/operations/${id}`;
    let answered = false;
    const held = server.request('GET', path).then((answer) => {
      answered = true;
      return answer;
    });
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    clock.advance(1999);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(answered).toBe(false);
    clock.advance(1);
    expect((await held).body).toMatchObject({ status: 'InProgress' });
    expect(await server.request('GET', path, undefined, { 'x-loopwright-wait-seconds': '51' })).toMatchObject({
      status: 400,
    });
    hold.release();
    await server.result('s', id);
  });
});

describe('the log', () => {
  it('has method, route, status, time and ids, and nothing of what was sent or sampled', async () => {
    const lines: string[] = [];
    const stream = new Writable({
      write: (chunk, _encoding, done) => {
        lines.push(String(chunk));
        done();
      },
    });
    const server = await opened({ logger: pino({ level: 'trace' }, stream), apiKey: 'a-secret-key' });
    const headers = { authorization: 'Bearer a-secret-key' };
    const creation = await server.request(
      'POST',
      '/',
      {
        TrainingSessionName: 's',
        RoleArn: 'arn:aws:iam::000000000000:role/loopwright',
        OutputConfig: { S3Location: { Path: 's3://a/b' } },
        LoraConfig: { Rank: 8, Alpha: 16 },
        ModelConfig: {
          BaseModelArn: 'arn:aws:sagemaker:self-hosted-1:aws:hub-content/SageMakerPublicHub/Model/fake-model',
        },
      },
      { ...headers, 'x-amz-target': 'SageMaker.CreateTrainingSession' },
    );
    expect(creation.status).toBe(200);
    for (let tries = 0; tries < 200; tries++) {
      const { body } = await server.request(
        'POST',
        '/',
        { TrainingSessionName: 's' },
        { ...headers, 'x-amz-target': 'SageMaker.DescribeTrainingSession' },
      );
      if ((body.TrainingSessionDetail as { TrainingSessionStatus: string }).TrainingSessionStatus === 'Running') break;
    }
    const prompt = { chunks: [{ type: 'encoded_text', tokens: [61, 62, 63, 61, 62, 63] }] };
    const config = { sample: { prompt, numSamples: 2, samplingParams: { maxTokens: 8, stop: ['a secret stop'] } } };
    const path = '/v1/training-sessions/s/sampling-operations';
    const { body } = await server.request('POST', path, { operationConfig: config }, headers);
    const result = await server.request('GET', `${path}/${String(body.operationId)}`, undefined, headers);
    expect(result.body).toMatchObject({ status: 'Completed' });
    const bad = {
      ...config,
      sample: { ...config.sample, prompt: { chunks: [{ type: 'a secret type', tokens: [] }] } },
    };
    await server.request('POST', path, { operationConfig: bad }, headers);
    await server.request('POST', path, '{"a secret body', headers);
    const log = lines.join('');
    expect(log).not.toMatch(/secret/);
    expect(log).not.toMatch(/61,\s*62/);
    expect(log).not.toContain('tokens');
    const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(entries).toContainEqual(
      expect.objectContaining({
        method: 'GET',
        route: '/v1/training-sessions/:name/sampling-operations/:operationId',
        status: 200,
        ms: expect.any(Number),
        session: 's',
        requestId: expect.any(String),
      }),
    );
  });
});

describe('the model hub', () => {
  it('lists models and finds one by id, hub name or path', async () => {
    const server = await opened();
    const list = await server.control('ListHubContents', { HubName: 'SageMakerPublicHub', HubContentType: 'Model' });
    expect(list.body.HubContentSummaries).toMatchObject([
      {
        HubContentName: 'fake-model',
        HubContentSearchKeywords: expect.arrayContaining([
          '@capability:training_session',
          '@huggingface-id:fake-model',
        ]),
      },
    ]);
    for (const HubContentName of ['fake-model', 'loopwright/fake-model', server.modelDir]) {
      const found = await server.control('DescribeHubContent', {
        HubName: 'SageMakerPublicHub',
        HubContentType: 'Model',
        HubContentName,
      });
      expect(found.status).toBe(200);
      await server.createSession(`s${server.engine.calls.length}`, {
        ModelConfig: { BaseModelArn: found.body.HubContentArn },
      });
    }
    const unknown = { HubName: 'SageMakerPublicHub', HubContentType: 'Model', HubContentName: 'other' };
    expect((await server.control('DescribeHubContent', unknown)).body).toMatchObject({ __type: 'ResourceNotFound' });
  });

  it('takes no path where paths are not allowed, and no directory without a config', async () => {
    const server = await opened({ allowModelPaths: false });
    const content = { HubName: 'SageMakerPublicHub', HubContentType: 'Model', HubContentName: server.modelDir };
    expect((await server.control('DescribeHubContent', content)).body).toMatchObject({ code: 'unknown_model' });
    const other = await opened();
    expect(
      (await other.control('DescribeHubContent', { ...content, HubContentName: other.dataDir })).body,
    ).toMatchObject({ code: 'model_invalid' });
  });

  it('serves tokenizer files as tokenizer libraries ask for them', async () => {
    const server = await opened();
    const model = await server.request('GET', '/api/models/loopwright/fake-model');
    expect(model.body).toMatchObject({
      sha: expect.stringMatching(/^[0-9a-f]{40}$/),
      siblings: [{ rfilename: 'config.json' }, { rfilename: 'tokenizer.json' }],
    });
    for (const path of ['/loopwright/fake-model', '/fake-model']) {
      const file = await server.request('GET', `${path}/resolve/main/tokenizer.json`);
      expect(file.body).toEqual({ version: '1.0' });
      const head = await server.request('HEAD', `${path}/resolve/${String(model.body.sha)}/tokenizer.json`);
      expect(head.status).toBe(200);
      expect(head.headers.get('content-length')).toBe('17');
      expect(head.headers.get('etag')).toBe(file.headers.get('etag'));
      expect(head.headers.get('x-repo-commit')).toBe(model.body.sha);
    }
    const tree = await server.request('GET', '/api/models/loopwright/fake-model/tree/main?recursive=true&expand=false');
    expect(tree.body).toMatchObject([
      { type: 'file', path: 'config.json' },
      { type: 'file', path: 'tokenizer.json', size: 17 },
    ]);
  });

  it.each([
    '/loopwright/fake-model/resolve/main/model.safetensors',
    '/loopwright/fake-model/resolve/main/vocab.json',
    '/loopwright/fake-model/resolve/main/..%2F..%2Fetc%2Fpasswd',
    '/loopwright/fake-model/resolve/main/%2Ftmp',
    '/loopwright/other/resolve/main/config.json',
    '/%2Ftmp/fake/resolve/main/config.json',
    '/api/models/loopwright/other',
    '/api/models/loopwright/fake-model/tree/main/additional_chat_templates?recursive=false&expand=false',
  ])('answers %s with 404 and EntryNotFound', async (path) => {
    const server = await opened();
    const answer = await server.request('GET', path);
    expect(answer.status).toBe(404);
    expect(answer.headers.get('x-error-code')).toBe('EntryNotFound');
  });

  it('lists what there is to know of each model', async () => {
    const server = await opened();
    expect((await server.request('GET', '/v1/models')).body).toMatchObject({
      models: [{ id: 'fake-model', architecture: 'llama', contextLength: 128, vocabSize: 64 }],
    });
  });

  it('tells the state of the engines on the health route', async () => {
    const server = await opened();
    await server.createSession('s');
    await server.train('s', 1, step());
    expect((await server.request('GET', '/health')).body).toMatchObject({
      engines: [{ model: 'fake-model', state: 'ready', incarnation: 'fake' }],
    });
  });
});

describe('the list of models', () => {
  it('is refused in both shapes: it is OpenAI’s and ours', async () => {
    const server = await opened({ apiKey: 'a-long-enough-key' });
    const { status, body } = await server.request('GET', '/v1/models', undefined, { authorization: 'Bearer no' });
    expect([status, body]).toMatchObject([
      401,
      { code: 'unauthenticated', error: { code: 'invalid_api_key', message: expect.stringContaining('another key') } },
    ]);
  });
});
