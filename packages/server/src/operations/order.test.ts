/** Order and exactly-once execution, over the HTTP routes. */
import { LoopwrightError } from '@loopwright/protocol';
import type { FakeEngine } from '@loopwright/testkit';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ManualClock } from '../testing/manual-clock.js';
import { pass, saveWeights, step } from '../testing/operations.js';
import { openTestServer, type TestServer, type TestServerOptions } from '../testing/test-server.js';

const open: TestServer[] = [];
async function started(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await openTestServer(options);
  open.push(server);
  await server.createSession('s');
  return server;
}
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});
const passes = (engine: FakeEngine) => engine.calls.filter((call) => call.startsWith('pass:'));

describe('exactly once', () => {
  it('executes a number that was posted twice once, with the same answer', async () => {
    const server = await started();
    const first = await server.submit('s', 1, pass(), 'token-1');
    const again = await server.submit('s', 1, pass(), 'token-1');
    expect(again.body).toEqual(first.body);
    const id = String(first.body.operationId);
    expect(await server.result('s', id)).toEqual(await server.result('s', id));
    const afterwards = await server.submit('s', 1, pass(), 'token-1');
    expect(afterwards.body).toEqual(first.body);
    expect(passes(server.engine)).toHaveLength(1);
  });

  it('takes two posts of one number at the same moment as one', async () => {
    const server = await started();
    const answers = await Promise.all(Array.from({ length: 8 }, () => server.submit('s', 1, pass(), 'token-1')));
    expect(new Set(answers.map(({ body }) => body.operationId)).size).toBe(1);
    await server.result('s', String(answers[0]!.body.operationId));
    expect(passes(server.engine)).toHaveLength(1);
  });

  it.each([
    ['the number with another payload', 1, pass([9]), undefined],
    ['the number with another token', 1, pass(), 'token-2'],
    ['the token with another payload', 2, pass([9]), 'token-1'],
    ['the token with another number', 2, pass(), 'token-1'],
  ] as const)('refuses %s', async (_, number, operation, token) => {
    const server = await started();
    await server.submit('s', 1, pass(), 'token-1');
    const answer = await server.submit('s', number, operation, token);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ __type: 'ValidationException', code: 'sequence_conflict' });
  });

  it('runs a sampling request that comes again with its token once, whatever seed was drawn for it', async () => {
    const server = await started();
    const answers = await Promise.all(Array.from({ length: 4 }, () => server.submitSample('s', {}, 'token-1')));
    const again = await server.submitSample('s', {}, 'token-1');
    const ids = new Set([...answers, again].map(({ body }) => String(body.operationId)));
    expect(ids.size).toBe(1);
    await server.result('s', [...ids][0]!, 'sampling-operations');
    expect(server.engine.calls.filter((call) => call.startsWith('sample'))).toHaveLength(1);
    const other = await server.submitSample('s', { numSamples: 3 }, 'token-1');
    expect(other.body).toMatchObject({ code: 'sequence_conflict' });
    const odd = await server.submitSample('s', {}, 'no spaces');
    expect(odd).toMatchObject({ status: 400, body: { code: 'invalid_argument' } });
    expect(String(odd.body.message)).toContain('x-loopwright-client-token');
  });

  it('does not use a number up by a conflict', async () => {
    const server = await started();
    await server.submit('s', 1, pass(), 'token-1');
    await server.submit('s', 2, pass([9]), 'token-1');
    expect((await server.train('s', 2, pass())).status).toBe('Completed');
  });
});

describe('order', () => {
  it('makes 9 wait for 8, says so, and blocks the session meanwhile', async () => {
    const server = await started();
    await server.train('s', 1, pass());
    const late = String((await server.submit('s', 3, step())).body.operationId);
    const detail = await server.status('s', 'Blocked');
    expect(detail.ErrorDetails).toContain('sequence number 2 is missing');
    expect(await server.result('s', late, 'operations', 0)).toMatchObject({
      status: 'Pending',
      loopwright: { state: 'queued', waitingFor: 'sequence number 2', position: 0 },
    });
    expect((await server.train('s', 2, pass([9]))).status).toBe('Completed');
    expect((await server.result('s', late)).status).toBe('Completed');
    expect(await server.status('s', 'Running')).not.toHaveProperty('ErrorDetails');
    expect(server.engine.calls.slice(-4)).toEqual([
      'pass:s:forward-backward',
      '/pass:s:forward-backward',
      'optimStep:s',
      '/optimStep:s',
    ]);
  });

  it('runs operations by number whatever order they arrive in', async () => {
    const server = await started();
    const order = [4, 2, 5, 3, 1];
    const ids = await Promise.all(
      order.map(async (n) => String((await server.submit('s', n, step(n * 1e-5))).body.operationId)),
    );
    const results = await Promise.all(ids.map((id) => server.result('s', id)));
    const steps = results.map(({ operationResult }) => {
      const metrics = operationResult?.optimizerStep?.metrics as Record<string, number> | undefined;
      return metrics?.['optim/step'];
    });
    expect(steps).toEqual(order);
  });

  it('fails the session and skips what waits when the missing number does not come', async () => {
    const clock = new ManualClock();
    const server = await started({ clock, gapTimeoutMs: 60_000 });
    const late = String((await server.submit('s', 2, step())).body.operationId);
    await server.status('s', 'Blocked');
    clock.advance(60_000);
    const detail = await server.status('s', 'Failed');
    expect(detail.ErrorDetails).toBe('sequence number 1 did not arrive within 60 s');
    expect(await server.result('s', late)).toMatchObject({
      status: 'Skipped',
      loopwright: { error: { code: 'operation_skipped' } },
    });
    expect(server.engine.sessionNames).toEqual([]);
  });

  it('accepts nothing more once a session is failing: what came then would never end', async () => {
    const clock = new ManualClock();
    const server = await started({ clock, gapTimeoutMs: 60_000 });
    await server.submit('s', 2, step());
    await server.status('s', 'Blocked');
    const leaving = server.engine.hold('closeSession');
    clock.advance(60_000);
    await leaving.entered; // what was open has been skipped by now
    expect(await server.submit('s', 1, step())).toMatchObject({ body: { code: 'session_not_active' } });
    expect(await server.submitSample('s')).toMatchObject({ body: { code: 'session_not_active' } });
    leaving.release();
    await server.status('s', 'Failed');
  });

  it('lets the loop go on after a refused submission: its number is used', async () => {
    const server = await started();
    const body = {
      sequenceNumber: 1,
      operationConfig: { forwardBackward: { lossFnName: 'no_such_loss', datumList: [] } },
    };
    const refused = await server.request('POST', '/v1/training-sessions/s/operations', body);
    expect(refused).toMatchObject({ status: 400, body: { code: 'invalid_argument' } });
    expect((await server.train('s', 2, pass())).status).toBe('Completed');
    expect(await server.detail('s')).toMatchObject({ LastReceivedSequenceNumber: 2 });
    expect(await server.submit('s', 1, pass())).toMatchObject({ status: 400, body: { code: 'sequence_conflict' } });
  });

  it('releases a waiting operation when the missing number turns out to be a refused one', async () => {
    const server = await started();
    const late = String((await server.submit('s', 2, pass())).body.operationId);
    await server.status('s', 'Blocked');
    await server.submit('s', 1, pass([64]));
    expect((await server.result('s', late)).status).toBe('Completed');
    await server.status('s', 'Running');
  });

  it('tells which operation a waiting one waits for, and for how long that has run', async () => {
    const clock = new ManualClock();
    const server = await started({ clock });
    const hold = server.engine.hold('pass');
    const first = String((await server.submit('s', 1, pass())).body.operationId);
    const second = String((await server.submit('s', 2, step())).body.operationId);
    await hold.entered;
    clock.advance(3000);
    expect(await server.result('s', first, 'operations', 0)).toMatchObject({
      status: 'InProgress',
      loopwright: { state: 'running' },
    });
    expect(await server.result('s', second, 'operations', 0)).toMatchObject({
      status: 'Pending',
      loopwright: { waitingFor: 'operation 1 (forward-backward) running for 3 s', position: 1 },
    });
    hold.release();
    expect((await server.result('s', second)).status).toBe('Completed');
  });
});

describe('a pass that fails', () => {
  it('fails the next step with gradient_incomplete and clears the gradient, once', async () => {
    const server = await started();
    await server.train('s', 1, pass());
    server.engine.failNext('pass', new LoopwrightError({ code: 'out_of_memory', message: 'no memory' }));
    expect(await server.train('s', 2, pass([9]))).toMatchObject({ status: 'Failed', errorDetails: 'no memory' });
    expect(await server.train('s', 3, step())).toMatchObject({
      status: 'Failed',
      loopwright: { error: { code: 'gradient_incomplete' } },
    });
    expect(server.engine.calls).toContain('clearGradient:s');
    await server.train('s', 4, pass());
    const done = await server.train('s', 5, step());
    expect(done.operationResult?.optimizerStep?.metrics).toMatchObject({ 'optim/step': 1 });
  });

  it('that computes no gradient leaves the next step alone', async () => {
    const server = await started();
    await server.train('s', 1, pass());
    server.engine.failNext('pass', new LoopwrightError({ code: 'out_of_memory', message: 'no memory' }));
    await server.train('s', 2, pass([9], 'forward'));
    expect((await server.train('s', 3, step())).status).toBe('Completed');
  });
});

describe('cancelling', () => {
  const cancel = (server: TestServer, id: string, kind = 'operations') =>
    server.request('DELETE', `/v1/training-sessions/s/${kind}/${id}`);

  it('ends a running pass, and the step behind it knows', async () => {
    const server = await started();
    const hold = server.engine.hold('pass');
    const first = String((await server.submit('s', 1, pass())).body.operationId);
    const second = String((await server.submit('s', 2, step())).body.operationId);
    await hold.entered;
    expect((await cancel(server, first)).body).toMatchObject({
      status: 'Failed',
      loopwright: { error: { code: 'cancelled' } },
    });
    expect(await server.result('s', second)).toMatchObject({ loopwright: { error: { code: 'gradient_incomplete' } } });
  });

  it('ends a waiting pass without running it; operations in front of it are not touched', async () => {
    const server = await started();
    const hold = server.engine.hold('optimStep');
    const first = String((await server.submit('s', 1, step())).body.operationId);
    const second = String((await server.submit('s', 2, pass())).body.operationId);
    const third = String((await server.submit('s', 3, step())).body.operationId);
    await hold.entered;
    expect((await cancel(server, second)).body).toMatchObject({ status: 'Failed' });
    hold.release();
    expect((await server.result('s', first)).status).toBe('Completed');
    expect(await server.result('s', third)).toMatchObject({ loopwright: { error: { code: 'gradient_incomplete' } } });
    expect(passes(server.engine)).toEqual([]);
  });

  it('ends a running sampling operation, and costs nothing', async () => {
    const server = await started();
    const hold = server.engine.hold('sample');
    const id = await server.sample('s');
    await hold.entered;
    expect((await cancel(server, id, 'sampling-operations')).body).toMatchObject({
      status: 'Failed',
      loopwright: { error: { code: 'cancelled' } },
    });
    expect(await server.detail('s')).toMatchObject({
      BillableTokenUsage: { PrefillTokenCount: 0, SampleTokenCount: 0 },
    });
  });

  it('leaves a running step and an ended operation as they are', async () => {
    const server = await started();
    const hold = server.engine.hold('optimStep');
    const id = String((await server.submit('s', 1, step())).body.operationId);
    await hold.entered;
    expect((await cancel(server, id)).body).toMatchObject({ status: 'InProgress' });
    hold.release();
    await server.result('s', id);
    expect((await cancel(server, id)).body).toMatchObject({ status: 'Completed' });
  });
});

describe('sampling', () => {
  it('is answered with its result by a submission that offers to wait, and with how it stands when that is over', async () => {
    const server = await started();
    const path = '/v1/training-sessions/s/sampling-operations';
    const prompt = { chunks: [{ type: 'encoded_text', tokens: [1, 2, 3] }] };
    const body = { operationConfig: { sample: { prompt, numSamples: 1, samplingParams: { maxTokens: 4 } } } };
    const submit = (seconds: string) => server.request('POST', path, body, { 'x-loopwright-wait-seconds': seconds });
    const { operationId, ...held } = (await submit('20')).body;
    expect(held).toMatchObject({ status: 'Completed' });
    expect(held).toEqual(await server.result('s', String(operationId), 'sampling-operations'));
    const hold = server.engine.hold('sample');
    expect((await submit('0')).body).toMatchObject({ operationId: expect.any(String), status: expect.any(String) });
    hold.release();
    const refused = await submit('51');
    expect(refused).toMatchObject({ status: 400, body: { code: 'invalid_argument' } });
  });

  it('is traced while its session lives, and until the next look for what can go', async () => {
    const server = await started();
    await server.train('s', 1, pass());
    const traced = async () => ((await server.request('GET', '/v1/sessions/s/trace')).body.operations as []).length;
    await server.control('StopTrainingSession', { TrainingSessionName: 's' });
    await server.status('s', 'Stopped');
    expect(await traced()).toBe(1);
    await vi.waitFor(async () => {
      await server.sweep();
      expect(await traced()).toBe(0);
    });
  });

  it('runs while a training pass runs, and the trace shows it', async () => {
    const server = await started();
    const hold = server.engine.hold('pass');
    const training = String((await server.submit('s', 1, pass())).body.operationId);
    await hold.entered;
    expect((await server.result('s', await server.sample('s'), 'sampling-operations')).status).toBe('Completed');
    hold.release();
    await server.result('s', training);
    const { body } = await server.request('GET', '/v1/sessions/s/trace');
    const [first, second] = body.operations as {
      kind: string;
      endedAtMs: number;
      slices: { done: number }[];
    }[];
    expect([first!.kind, second!.kind]).toEqual(['training', 'sampling']);
    expect(first!.slices).toMatchObject([{ done: 1 }]);
    expect(second!.endedAtMs).toBeLessThanOrEqual(first!.endedAtMs);
  });

  it('runs no more at once than the limit, and says what the rest waits for', async () => {
    const server = await started({ samplingConcurrency: 2 });
    const holds = [server.engine.hold('sample'), server.engine.hold('sample')];
    const ids = [await server.sample('s'), await server.sample('s'), await server.sample('s')];
    await Promise.all(holds.map(({ entered }) => entered));
    expect(await server.result('s', ids[2]!, 'sampling-operations', 0)).toMatchObject({
      status: 'Pending',
      loopwright: { waitingFor: 'a free place: 2 sampling operations run', position: 0 },
    });
    for (const { release } of holds) release();
    for (const id of ids) expect((await server.result('s', id, 'sampling-operations')).status).toBe('Completed');
  });

  it('is refused with the advice to come later where too many have not ended', async () => {
    const server = await started({ limits: { openOperations: 2 } });
    const hold = server.engine.hold('sample');
    const first = await server.sample('s');
    await hold.entered;
    await server.sample('s');
    const prompt = { chunks: [{ type: 'encoded_text', tokens: [1] }] };
    const body = { operationConfig: { sample: { prompt, numSamples: 1, samplingParams: { maxTokens: 1 } } } };
    const third = await server.request('POST', '/v1/training-sessions/s/sampling-operations', body);
    expect(third).toMatchObject({ status: 429, body: { code: 'limit_exceeded', details: { got: '2' } } });
    expect(third.headers.get('retry-after')).toBe('1');
    hold.release();
    await server.result('s', first, 'sampling-operations');
    await server.sample('s');
  });

  it('reads the latest save of the moment of its acceptance, and the base before any save', async () => {
    const server = await started();
    const calls = () => server.engine.calls.filter((call) => call.startsWith('sample:'));
    await server.result('s', await server.sample('s'), 'sampling-operations');
    await server.train('s', 1, pass());
    await server.train('s', 2, step());
    await server.result('s', await server.sample('s'), 'sampling-operations');
    await server.train('s', 3, saveWeights());
    await server.result('s', await server.sample('s'), 'sampling-operations');
    await server.train('s', 4, saveWeights());
    await server.result('s', await server.sample('s'), 'sampling-operations');
    expect(calls().map((call) => call.split('/').at(-1))).toEqual(['sample:base', 'sample:base', '1', '2']);
  });
});
