/** Sessions, versions, models and tokenizers through the service client. */
import { readFileSync } from 'node:fs';
import { LoopwrightError } from '@loopwright/protocol';
import { expect, test } from 'vitest';
import { modelPackage } from './testing/fake-results.js';
import type { SeenRequest } from './testing/fake-server.js';
import { failure, setUp } from './testing/setup.js';

const bodyOf = (body: string | undefined): Record<string, unknown> => JSON.parse(body ?? '{}');

test('constructing makes no request', () => {
  expect(setUp().server.seen).toEqual([]);
});

test('a session is asked for with the caller’s options and waited for until it runs', async () => {
  const { server, service } = setUp();
  server.startStatuses.push('Created', 'Scheduled');
  const training = await service.createLoraTrainingClient({
    baseModel: 'tiny',
    rank: 16,
    seed: 1,
    targetModules: ['q_proj'],
    samplerPath: 'merged',
  });
  const [created] = server.requests('SageMaker.CreateTrainingSession');
  expect(bodyOf(created?.body)).toMatchObject({
    TrainingSessionName: training.name,
    LoraConfig: { Rank: 16, Alpha: 32 },
    ModelConfig: { BaseModelArn: expect.stringContaining('/Model/tiny/1.0.0') },
    Loopwright: { TrainingType: 'lora', Seed: 1, TargetModules: ['q_proj'], SamplerPath: 'merged' },
  });
  expect(server.requests('SageMaker.DescribeTrainingSession')).toHaveLength(3);
  expect(training).toMatchObject({ baseModel: 'tiny', trainingType: 'lora' });
});

test('every weight can be trained instead', async () => {
  const { server, service } = setUp();
  const training = await service.createTrainingClient({
    trainingType: 'full',
    baseModel: 'tiny',
    name: 'all',
    description: 'all of it',
  });
  expect(bodyOf(server.requests('SageMaker.CreateTrainingSession')[0]?.body)).toMatchObject({
    TrainingSessionName: 'all',
    Loopwright: { TrainingType: 'full', Description: 'all of it' },
  });
  expect(training.trainingType).toBe('full');
});

test('a session that fails to come up is stopped and says why', async () => {
  const { server, service } = setUp();
  server.startStatuses.push('Scheduled', 'Failed');
  const error = await failure(service.createLoraTrainingClient({ baseModel: 'tiny' }));
  expect(error.code).toBe('session_not_active');
  expect(error.message).toContain('the model did not load');
  expect(server.only.status).toBe('Stopped');
});

test('what is wrong is told before any session is made', async () => {
  const { server, service } = setUp();
  expect((await failure(service.createLoraTrainingClient({ baseModel: 'tiny', rank: 0 }))).details.field).toBe('rank');
  expect((await failure(service.createLoraTrainingClient({ baseModel: '' }))).details.field).toBe('baseModel');
  expect((await failure(service.createLoraTrainingClient({ baseModel: 'nobody/nothing' }))).code).toBe('unknown_model');
  expect(server.sessions.size).toBe(0);
});

test('a name that is taken is refused, but a lost answer is not, whoever gave the name', async () => {
  const { server, service } = setUp();
  await service.createLoraTrainingClient({ baseModel: 'tiny', name: 'mine' });
  expect((await failure(service.createLoraTrainingClient({ baseModel: 'tiny', name: 'mine' }))).code).toBe(
    'session_exists',
  );
  const fault = {
    when: ({ headers }: SeenRequest) => headers.get('x-amz-target') === 'SageMaker.CreateTrainingSession',
    fault: 'lose-answer',
  } as const;
  for (const name of [{}, { name: 'theirs' }]) {
    server.faults.push(fault);
    const training = await service.createLoraTrainingClient({ baseModel: 'tiny', ...name });
    expect(server.sessions.get(training.name)?.status).toBe('Running');
  }
  expect(server.faults).toEqual([]);
});

test('a resume asks for what the version was trained with and loads it first', async () => {
  const { server, service } = setUp();
  server.packages.push(
    modelPackage(4, 'state', {
      Kind: 'state',
      TrainingType: 'lora',
      Rank: 4,
      Alpha: 12,
      TargetModules: ['v_proj'],
      SamplerPath: 'merged',
    }),
  );
  const modelPackageArn = modelPackage(4, 'state').ModelPackageArn;
  const training = await service.createTrainingClientFromStateWithOptimizer({ modelPackageArn });
  await service.createTrainingClientFromState({ modelPackageArn, rank: 4, name: 'again' });
  const [first] = server.requests('SageMaker.CreateTrainingSession');
  expect(bodyOf(first?.body)).toMatchObject({
    LoraConfig: { Rank: 4, Alpha: 12 },
    Loopwright: { TargetModules: ['v_proj'], SamplerPath: 'merged' },
  });
  expect(server.training).toMatchObject([
    { sequenceNumber: 1, operation: { type: 'load-state', version: 'sagemaker-default/4', loadOptimizer: true } },
    { sequenceNumber: 1, operation: { loadOptimizer: false } },
  ]);
  await training.optimStep();
  expect(training.currentSequenceNumber).toBe(2);
});

test('where the version does not tell, the session that saved it does', async () => {
  const { server, service } = setUp();
  await service.createLoraTrainingClient({ baseModel: 'tiny', rank: 4, alpha: 12, name: 'saver' });
  server.packages.push(modelPackage(4, 'state', { Kind: 'state', SessionName: 'saver' }));
  server.packages.push(modelPackage(5, 'state', { Kind: 'state', SessionName: 'deleted' }));
  const [known, unknown] = server.packages.map(({ ModelPackageArn }) => ModelPackageArn);
  await service.createTrainingClientFromState({ modelPackageArn: known! });
  await service.createTrainingClientFromState({ modelPackageArn: unknown! });
  const created = server.requests('SageMaker.CreateTrainingSession').slice(1);
  expect(created.map(({ body }) => bodyOf(body).LoraConfig)).toEqual([
    { Rank: 4, Alpha: 12 },
    { Rank: 32, Alpha: 64 },
  ]);
});

test('a session whose load fails is stopped again', async () => {
  const { server, service } = setUp();
  server.packages.push(modelPackage(4, 'state'));
  server.onTraining = () => new LoopwrightError({ code: 'checkpoint_mismatch', message: 'another rank' });
  const { ModelPackageArn: modelPackageArn } = modelPackage(4, 'state');
  expect((await failure(service.createTrainingClientFromState({ modelPackageArn }))).code).toBe('checkpoint_mismatch');
  expect(server.only.status).toBe('Stopped');
});

test('sessions are listed over all pages, stopped twice, and deleted', async () => {
  const { server, service } = setUp();
  for (const name of ['a', 'b', 'c']) await service.createLoraTrainingClient({ baseModel: 'tiny', name });
  expect(await service.listSessions()).toEqual(
    ['a', 'b', 'c'].map((name) => ({ name, status: 'Running', createdAtMs: 1_790_000_000_000 })),
  );
  await service.stopSession('a');
  await service.stopSession('a');
  await service.deleteSession('a');
  await service.deleteSession('b', { stopIfActive: true });
  expect([...server.sessions.keys()]).toEqual(['c']);
  expect((await failure(service.stopSession('nobody'))).code).toBe('unknown_session');
});

test('saved versions are listed by kind, whether or not the server tells it, and deleted', async () => {
  const { server, service } = setUp();
  server.packages.push(
    modelPackage(3, 'weights'),
    modelPackage(2, 'state', { Kind: 'state' }),
    modelPackage(1, 'weights'),
  );
  expect((await service.listModelPackages()).map(({ version, kind }) => [version, kind])).toEqual([
    [3, 'weights'],
    [2, 'state'],
    [1, 'weights'],
  ]);
  const latest = await service.getLatestModelPackage('state');
  expect(latest).toMatchObject({ version: 2, description: 'version 2', createdAtMs: 1_790_000_002_000 });
  expect(await service.deleteModelPackage(latest!.modelPackageArn)).toBe(true);
  expect(await service.deleteModelPackage(latest!.modelPackageArn)).toBe(false);
  expect(await service.getLatestModelPackage('state')).toBeUndefined();
});

test('base models are listed by id', async () => {
  expect(await setUp().service.listBaseModels()).toEqual(['loopwright/tiny']);
});

test('a session that comes up after the service was closed is stopped again', async () => {
  const { server, service } = setUp();
  const late = service.createLoraTrainingClient({ baseModel: 'tiny' });
  await service.close();
  expect((await failure(late)).code).toBe('disposed');
  expect(server.only.status).toBe('Stopped');
});

test('a creation that is aborted while it waits leaves no session behind', async () => {
  const { server, service } = setUp();
  const controller = new AbortController();
  const isDescribe = ({ headers }: SeenRequest) => headers.get('x-amz-target') === 'SageMaker.DescribeTrainingSession';
  server.faults.push({
    when: (request) => {
      if (isDescribe(request)) controller.abort();
      return false;
    },
    fault: 'lose-request',
  });
  server.startStatuses.push('Scheduled', 'Scheduled');
  const error = await failure(service.createLoraTrainingClient({ baseModel: 'tiny', signal: controller.signal }));
  expect(error.code).toBe('cancelled');
  expect(server.only.status).toBe('Stopped');
  expect(
    (await failure(service.createLoraTrainingClient({ baseModel: 'tiny', signal: AbortSignal.abort() }))).code,
  ).toBe('cancelled');
});

test('closing the service closes what it made, and it makes no more', async () => {
  const { server, service } = setUp();
  {
    await using open = service;
    await open.createLoraTrainingClient({ baseModel: 'tiny', name: 'a' });
    await open.createSamplingClient({ baseModel: 'tiny' });
  }
  expect([...server.sessions.values()].map(({ status }) => status)).toEqual(['Stopped', 'Stopped']);
  expect((await failure(service.createLoraTrainingClient({ baseModel: 'tiny' }))).code).toBe('disposed');
});

test('the tokenizer comes from the server’s files, once, with or without the optional ones', async () => {
  const { server, service } = setUp();
  const vocab = { a: 0, b: 1, '<end>': 2 };
  const tokenizerJson = {
    version: '1.0',
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: null,
    model: { type: 'BPE', vocab, merges: [], unk_token: null },
  };
  server.files.set('/loopwright/tiny/resolve/main/tokenizer.json', JSON.stringify(tokenizerJson));
  const training = await service.createLoraTrainingClient({ baseModel: 'tiny' });
  const [tokenizer, again] = await Promise.all([
    training.getTokenizer(),
    training.createSamplingClient().getTokenizer(),
  ]);
  expect(tokenizer).toBe(again);
  expect(tokenizer.encode('ab')).toEqual([0, 1]);
  expect(server.requests('tokenizer.json')).toHaveLength(1);
});

test('a tokenizer that the server does not have is an error, and asked for again the next time', async () => {
  const { server, service } = setUp();
  const training = await service.createLoraTrainingClient({ baseModel: 'tiny' });
  expect((await failure(training.getTokenizer())).code).toBe('not_found');
  await failure(training.getTokenizer());
  expect(server.requests('resolve/main/tokenizer.json')).toHaveLength(2);
});

test('nothing here needs Node', () => {
  const names = ['transport', 'session-link', 'service-client', 'training-client', 'sampling-client', 'catalog'];
  for (const name of names) {
    expect(readFileSync(new URL(`${name}.ts`, import.meta.url), 'utf8')).not.toMatch(/from 'node:/);
  }
});
