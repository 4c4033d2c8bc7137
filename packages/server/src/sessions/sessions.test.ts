/** The life of a session: creation, listing, quota, stop, deletion, expiry, and what it costs. */
import { LoopwrightError } from '@loopwright/protocol';
import { afterEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../testing/manual-clock.js';
import { pass, saveWeights, step } from '../testing/operations.js';
import { type Body, openTestServer, type TestServer, type TestServerOptions } from '../testing/test-server.js';

const open: TestServer[] = [];
async function opened(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await openTestServer(options);
  open.push(server);
  return server;
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});
const named = (TrainingSessionName: string) => ({ TrainingSessionName });
const names = (body: Body) =>
  (body.TrainingSessionSummaries as { TrainingSessionArn: string }[]).map(
    ({ TrainingSessionArn }) => TrainingSessionArn.split('/')[1],
  );

describe('creating', () => {
  it('goes through Created and Scheduled while the model loads, and refuses operations until it runs', async () => {
    const server = await opened();
    const hold = server.engine.hold('createSession');
    const creating = server.createSession('s');
    await hold.entered;
    expect((await server.detail('s')).TrainingSessionStatus).toBe('Scheduled');
    expect(await server.submit('s', 1, pass())).toMatchObject({
      status: 409,
      body: {
        __type: 'ConflictException',
        message: 'Training session s is in state Scheduled; it must be Running or Blocked',
      },
    });
    hold.release();
    await creating;
    expect((await server.train('s', 1, pass())).status).toBe('Completed');
  });

  it('echoes what it was given', async () => {
    const server = await opened();
    await server.createSession('s', { Tags: [{ Key: 'team', Value: 'blue' }], LoraConfig: { Rank: 4, Alpha: 8 } });
    expect(await server.detail('s')).toMatchObject({
      TrainingSessionName: 's',
      Tags: [{ Key: 'team', Value: 'blue' }],
      LoraConfig: { Rank: 4, Alpha: 8 },
      LastReceivedSequenceNumber: 0,
      BillableTokenUsage: { PrefillTokenCount: 0, SampleTokenCount: 0, TrainingTokenCount: 0 },
    });
  });

  it('keep role, key, network and tags as they were given, and show them', async () => {
    const given = {
      RoleArn: 'arn:aws:iam::123456789012:role/Trainer',
      OutputConfig: {
        S3Location: { Path: 's3://b/out', KmsKeyArn: 'arn:aws:kms:us-west-2:123456789012:key/mrk-0a1b-2c' },
      },
      VpcConfig: { SecurityGroupIds: ['sg-1'], Subnets: ['subnet-1', 'subnet-2'] },
      Tags: [{ Key: 'team', Value: '' }],
    };
    const server = await opened();
    await server.createSession('kept', given);
    expect((await server.control('DescribeTrainingSession', { TrainingSessionName: 'kept' })).body).toMatchObject({
      TrainingSessionDetail: given,
    });
  });

  it('again with the token of the first finds the session that it made, and nothing else does', async () => {
    const server = await opened();
    const token = { Loopwright: { Seed: 1, ClientToken: 'token-1' } };
    await server.createSession('s', token);
    await server.createSession('s', token);
    expect(server.engine.calls.filter((call) => call.startsWith('createSession'))).toHaveLength(1);
    for (const other of [
      { Loopwright: { Seed: 1, ClientToken: 'token-2' } },
      { Loopwright: { Seed: 1 } },
      { ...token, LoraConfig: { Rank: 4, Alpha: 8 } },
    ]) {
      await expect(server.createSession('s', other)).rejects.toThrow('session_exists');
    }
    await server.createSession('t', { Loopwright: { Seed: 1 } });
    await expect(server.createSession('t', { Loopwright: { Seed: 1 } })).rejects.toThrow('session_exists');
  });

  it('refuses a name that is taken, and an unknown model', async () => {
    const server = await opened();
    await server.createSession('s');
    await expect(server.createSession('s')).rejects.toThrow('"__type":"ResourceInUse"');
    const ModelConfig = {
      BaseModelArn: 'arn:aws:sagemaker:self-hosted-1:aws:hub-content/SageMakerPublicHub/Model/other/1.0.0',
    };
    await expect(server.createSession('t', { ModelConfig })).rejects.toThrow('"code":"unknown_model"');
    expect((await server.control('DescribeTrainingSession', named('t'))).body).toMatchObject({
      __type: 'ResourceNotFound',
    });
  });

  it('holds to the quota of live sessions; a stop frees a place', async () => {
    const server = await opened({ maxLiveSessions: 1 });
    await server.createSession('one');
    await expect(server.createSession('two')).rejects.toThrow('"__type":"ResourceLimitExceeded"');
    await server.control('StopTrainingSession', named('one'));
    await server.status('one', 'Stopped');
    await server.createSession('two');
  });

  it('trains every weight where that is asked for', async () => {
    const server = await opened();
    await server.createSession('s', { Loopwright: { TrainingType: 'full', Seed: 1 } });
    expect((await server.train('s', 1, saveWeights())).status).toBe('Completed');
  });
});

describe('listing', () => {
  it('filters by name and state and goes page by page, newest first', async () => {
    const clock = new ManualClock();
    const server = await opened({ clock });
    for (const name of ['a-1', 'a-2', 'b-1', 'a-3']) {
      await server.createSession(name);
      clock.advance(1000);
    }
    await server.control('StopTrainingSession', named('a-2'));
    await server.status('a-2', 'Stopped');
    const first = (await server.control('ListTrainingSessions', { MaxResults: 3 })).body;
    expect(names(first)).toEqual(['a-3', 'b-1', 'a-2']);
    const second = (await server.control('ListTrainingSessions', { MaxResults: 3, NextToken: first.NextToken })).body;
    expect(names(second)).toEqual(['a-1']);
    expect(second).not.toHaveProperty('NextToken');
    const filter = { NameContains: 'a-', StatusEquals: 'Running' };
    expect(names((await server.control('ListTrainingSessions', filter)).body)).toEqual(['a-3', 'a-1']);
    const CreationTimeAfter = clock.now() / 1000 - 2.5;
    expect(names((await server.control('ListTrainingSessions', { CreationTimeAfter })).body)).toEqual(['a-3', 'b-1']);
    expect((await server.control('ListTrainingSessions', { NextToken: 'x' })).body).toMatchObject({
      __type: 'ValidationException',
    });
  });
});

describe('stopping', () => {
  it('cancels what runs, skips what waits, frees the engine, and refuses what comes', async () => {
    const server = await opened();
    await server.createSession('s');
    await server.train('s', 1, pass([1], 'forward'));
    const holds = [server.engine.hold('pass'), server.engine.hold('sample')];
    const running = String((await server.submit('s', 2, pass())).body.operationId);
    const waiting = String((await server.submit('s', 3, step())).body.operationId);
    const sampling = await server.sample('s');
    await Promise.all(holds.map(({ entered }) => entered));
    expect((await server.control('StopTrainingSession', named('s'))).status).toBe(200);
    expect(await server.status('s', 'Stopped')).toHaveProperty('EndTime');
    expect(await server.result('s', running)).toMatchObject({
      status: 'Failed',
      loopwright: { error: { code: 'cancelled' } },
    });
    expect(await server.result('s', waiting)).toMatchObject({
      status: 'Skipped',
      loopwright: { error: { code: 'operation_skipped' } },
    });
    expect(await server.result('s', sampling, 'sampling-operations')).toMatchObject({ status: 'Failed' });
    expect(server.engine.sessionNames).toEqual([]);
    expect((await server.submit('s', 4, pass())).status).toBe(409);
    await expect(server.sample('s')).rejects.toThrow('ConflictException');
    expect(await server.detail('s')).toMatchObject({
      BillableTokenUsage: { TrainingTokenCount: 1, SampleTokenCount: 0 },
    });
  });

  it('twice is refused in the words that clients look for', async () => {
    const server = await opened();
    await server.createSession('s');
    await server.control('StopTrainingSession', named('s'));
    await server.status('s', 'Stopped');
    expect(await server.control('StopTrainingSession', named('s'))).toMatchObject({
      status: 400,
      body: { __type: 'ValidationException', message: 'invalid session state transition from Stopped to Stopping' },
    });
  });

  it('works while the model still loads', async () => {
    const server = await opened();
    const hold = server.engine.hold('createSession');
    const creating = server.createSession('s').catch(() => undefined);
    await hold.entered;
    await server.control('StopTrainingSession', named('s'));
    hold.release();
    await creating;
    await server.status('s', 'Stopped');
    for (let tries = 0; tries < 50 && server.engine.sessionNames.length > 0; tries++)
      await new Promise((resolve) => setImmediate(resolve));
    expect(server.engine.sessionNames).toEqual([]);
  });
});

describe('deleting', () => {
  it('is refused while the session lives, and afterwards takes all but its versions', async () => {
    const server = await opened();
    await server.createSession('s');
    await server.train('s', 1, saveWeights());
    expect(await server.control('DeleteTrainingSession', named('s'))).toMatchObject({
      status: 400,
      body: { __type: 'ValidationException', message: 'invalid session state transition from Running to Deleting' },
    });
    await server.control('StopTrainingSession', named('s'));
    await server.status('s', 'Stopped');
    expect((await server.control('DeleteTrainingSession', named('s'))).status).toBe(200);
    expect((await server.control('DescribeTrainingSession', named('s'))).body).toMatchObject({
      __type: 'ResourceNotFound',
    });
    expect((await server.control('ListModelPackages')).body.ModelPackageSummaryList).toHaveLength(1);
    await server.createSession('s');
    expect(await server.detail('s')).toMatchObject({ LastReceivedSequenceNumber: 0 });
  });
});

describe('idle sessions', () => {
  it('expire after the timeout, and not while something is open', async () => {
    const clock = new ManualClock();
    const server = await opened({ clock, idleTimeoutMs: 60_000 });
    await server.createSession('busy');
    await server.createSession('idle');
    clock.advance(59_000);
    await server.sweep();
    expect((await server.detail('idle')).TrainingSessionStatus).toBe('Running');
    const hold = server.engine.hold('pass');
    const id = String((await server.submit('busy', 1, pass())).body.operationId);
    await hold.entered;
    clock.advance(60_001);
    await server.sweep();
    expect(await server.detail('idle')).toMatchObject({
      TrainingSessionStatus: 'Expired',
      ErrorDetails: 'the session had no operation for more than the 1 min that this server allows',
    });
    expect((await server.detail('busy')).TrainingSessionStatus).toBe('Running');
    hold.release();
    await server.result('busy', id);
  });
});

describe('the lifetime of a session', () => {
  it('ends it in the middle of its work: what runs is given up, what waits is skipped', async () => {
    const clock = new ManualClock();
    const server = await opened({ clock, lifetimeMs: 3_600_000 });
    await server.createSession('s');
    const hold = server.engine.hold('pass');
    const ids: string[] = [];
    for (const number of [1, 2]) ids.push(String((await server.submit('s', number, pass())).body.operationId));
    await hold.entered;
    clock.advance(3_600_000);
    await server.sweep();
    expect((await server.detail('s')).TrainingSessionStatus).toBe('Running');
    clock.advance(1);
    await server.sweep();
    expect(await server.detail('s')).toMatchObject({
      TrainingSessionStatus: 'Expired',
      ErrorDetails: 'the session is older than the 60 min that this server lets sessions live',
    });
    expect((await server.result('s', ids[0]!)).status).toBe('Failed');
    expect((await server.result('s', ids[1]!)).status).toBe('Skipped');
    expect((await server.submit('s', 3, step())).body).toMatchObject({ code: 'session_not_active' });
  });
});

describe('a time of day that is moved', () => {
  it.each([
    ['forwards', 7_200_000],
    ['backwards', -7_200_000],
  ])('%s expires neither sessions nor versions early or late', async (_, ms) => {
    const clock = new ManualClock();
    const server = await opened({ clock, idleTimeoutMs: 60_000 });
    await server.createSession('s');
    await server.train('s', 1, saveWeights(90));
    clock.moveTimeOfDay(ms);
    await server.sweep();
    expect((await server.detail('s')).TrainingSessionStatus).toBe('Running');
    expect((await server.control('ListModelPackages')).body.ModelPackageSummaryList).toHaveLength(1);
    clock.advance(60_001);
    await server.sweep();
    expect((await server.detail('s')).TrainingSessionStatus).toBe('Expired');
    expect((await server.control('ListModelPackages')).body.ModelPackageSummaryList).toHaveLength(1);
    clock.advance(30_000);
    expect((await server.control('ListModelPackages')).body.ModelPackageSummaryList).toHaveLength(0);
  });
});

describe('the ledger', () => {
  it('adds up: prompts once per request, sampled tokens each, model inputs of both passes, nothing for failures', async () => {
    const server = await opened();
    await server.createSession('s');
    await server.train('s', 1, pass([1, 2, 3]));
    await server.train('s', 2, pass([1, 2], 'forward'));
    await server.train('s', 3, step());
    server.engine.failNext('pass', new LoopwrightError({ code: 'out_of_memory', message: 'no memory' }));
    await server.train('s', 4, pass([1, 2, 3, 4]));
    await server.result('s', await server.sample('s', { numSamples: 3 }), 'sampling-operations');
    server.engine.failNext('sample', new LoopwrightError({ code: 'out_of_memory', message: 'no memory' }));
    await server.result('s', await server.sample('s'), 'sampling-operations');
    const compute = {
      operationConfig: { computeLogprobs: { prompt: { chunks: [{ type: 'encoded_text', tokens: [1, 2] }] } } },
    };
    const { body } = await server.request('POST', '/v1/training-sessions/s/sampling-operations', compute);
    const done = await server.result('s', String(body.operationId), 'sampling-operations');
    expect(done.operationResult?.computeLogprobs?.logprobs).toEqual([null, expect.any(Number)]);
    await server.submit('s', 1, pass([1, 2, 3]));
    expect((await server.detail('s')).BillableTokenUsage).toEqual({
      PrefillTokenCount: 3 + 2,
      SampleTokenCount: 3 * 4,
      TrainingTokenCount: 3 + 2,
    });
  });
});

describe('usage', () => {
  it('is summed by session, model or type of operation, within a time, and outlives sessions', async () => {
    const server = await opened();
    const used = async (query = '') => {
      const { status, body } = await server.request('GET', `/v1/usage${query}`);
      return status === 200 ? body.usage : [status, (body as { details?: { field?: string } }).details?.field];
    };
    expect(await used()).toEqual([]);
    for (const name of ['s', 't']) {
      await server.createSession(name);
      await server.train(name, 1, pass([1, 2, 3]));
      await server.result(name, await server.sample(name, { numSamples: 2 }), 'sampling-operations');
    }
    await server.control('StopTrainingSession', { TrainingSessionName: 's' });
    await server.status('s', 'Stopped');
    await server.control('DeleteTrainingSession', { TrainingSessionName: 's' });
    const tokens = { prefillTokens: 3, sampleTokens: 2 * 4, trainingTokens: 3 };
    const lines = (await used()) as { firstAtMs: number; lastAtMs: number }[];
    expect(lines).toMatchObject([
      { session: { name: 's' }, operations: 2, ...tokens },
      { session: { name: 't' }, operations: 2, ...tokens },
    ]);
    const { baseModel } = lines[0] as { baseModel?: string };
    const sums = { prefillTokens: 6, sampleTokens: 16, trainingTokens: 6 };
    expect(await used('?by=model')).toEqual([
      { baseModel, operations: 4, ...sums, firstAtMs: lines[0]!.firstAtMs, lastAtMs: lines[1]!.lastAtMs },
    ]);
    expect(await used('?by=operation')).toMatchObject([
      { operationType: 'forward-backward', operations: 2, sampleTokens: 0, trainingTokens: 6 },
      { operationType: 'sample', operations: 2, sampleTokens: 16, trainingTokens: 0 },
    ]);
    expect(await used(`?to=${lines[0]!.firstAtMs}`)).toEqual([]);
    expect(await used(`?from=${lines[1]!.lastAtMs + 1}`)).toEqual([]);
    expect(await used('?by=day')).toEqual([400, 'query.by']);
    expect(await used('?from=yesterday')).toEqual([400, 'query.from']);
    expect(await used('?until=1')).toEqual([400, 'query.until']);
  });
});

describe('one trainer', () => {
  it('drives a session: a second one that names itself is refused', async () => {
    const server = await opened();
    await server.createSession('s');
    const submit = (sequenceNumber: number, trainer: string) =>
      server.request(
        'POST',
        '/v1/training-sessions/s/operations',
        { sequenceNumber, operationConfig: { saveState: {} } },
        { 'x-loopwright-trainer': trainer },
      );
    expect((await submit(1, 'first')).status).toBe(200);
    expect(await submit(2, 'second')).toMatchObject({ status: 409, body: { code: 'session_has_trainer' } });
    expect((await submit(2, 'first')).status).toBe(200);
  });
});
