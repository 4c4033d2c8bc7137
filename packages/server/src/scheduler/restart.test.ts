/** Sessions that outlive the server, or the engine that they were made in. */
import { join } from 'node:path';
import { LoopwrightError } from '@loopwright/protocol';
import { FakeEngine } from '@loopwright/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../store/open-database.js';
import { pass, saveState, saveWeights, step } from '../testing/operations.js';
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

/** Closes a server and opens another over the same data, with an engine that knows nothing. */
async function restarted(server: TestServer, options: TestServerOptions = {}): Promise<TestServer> {
  await server.close();
  const models = [{ id: 'fake-model', directory: server.modelDir }];
  return opened({ dataDir: server.dataDir, models, engine: new FakeEngine({ incarnation: 'second' }), ...options });
}

describe('a restart of the server', () => {
  it('keeps results, and answers a repeated submission with them', async () => {
    const server = await opened();
    await server.createSession('s');
    const answer = await server.submit('s', 1, pass(), 'token-1');
    const id = String(answer.body.operationId);
    const result = await server.result('s', id);
    const sampled = await server.sample('s');
    const tokens = await server.result('s', sampled, 'sampling-operations');
    const next = await restarted(server);
    expect(await next.result('s', id)).toEqual(result);
    expect(await next.result('s', sampled, 'sampling-operations')).toEqual(tokens);
    expect((await next.submit('s', 1, pass(), 'token-1')).body).toEqual(answer.body);
  });

  it.each([
    ['from the seed', [pass(), step(), pass([9]), pass([8])]],
    ['from a saved state', [pass(), step(), saveState, pass([9]), step(), pass([8])]],
    ['from a state that was saved with a gradient pending', [pass(), step(), pass([9]), saveState, pass([8])]],
    ['with saved weights in between', [pass(), step(), saveWeights(), pass([9]), step(2e-4), pass([1], 'forward')]],
  ])('makes the session anew %s, equal to one that was not disturbed', async (_, operations) => {
    const calm = await opened();
    const shaken = await opened();
    for (const server of [calm, shaken]) {
      await server.createSession('s');
      for (const [index, operation] of operations.entries()) {
        expect((await server.train('s', index + 1, operation)).status).toBe('Completed');
      }
    }
    const next = await restarted(shaken);
    const number = operations.length + 1;
    const results = [calm, next].map((server) => server.train('s', number, step()));
    expect(await results[1]).toEqual(await results[0]);
    expect(next.engine.fingerprint('s')).toBe(calm.engine.fingerprint('s'));
  });

  it('begins at the last saved state instead of running everything again', async () => {
    const server = await opened();
    await server.createSession('s');
    for (const [index, operation] of [pass(), step(), pass(), step(), saveState].entries())
      await server.train('s', index + 1, operation);
    const next = await restarted(server);
    await next.train('s', 6, pass());
    expect(next.engine.calls.filter((call) => !call.startsWith('/'))).toEqual([
      'closeSession:s',
      'createSession:s',
      'loadState:s',
      'pass:s:forward-backward',
    ]);
  });

  it('remembers a failed pass: the step after the restart still fails, and clears what was left', async () => {
    const server = await opened();
    await server.createSession('s');
    await server.train('s', 1, pass());
    server.engine.failNext('pass', new LoopwrightError({ code: 'out_of_memory', message: 'no memory' }));
    await server.train('s', 2, pass());
    const next = await restarted(server);
    expect(await next.train('s', 3, step())).toMatchObject({ loopwright: { error: { code: 'gradient_incomplete' } } });
    const last = await restarted(next);
    await last.train('s', 4, pass([1], 'forward'));
    expect(last.engine.fingerprint('s').split('/').slice(-2)).toEqual(['0', '0']);
  });

  it('runs what was waiting and what was running, once, and bills it once', async () => {
    const server = await opened();
    await server.createSession('s');
    await server.train('s', 1, pass());
    const holds = [server.engine.hold('pass'), server.engine.hold('sample')];
    const running = String((await server.submit('s', 2, pass([9]))).body.operationId);
    const waiting = String((await server.submit('s', 3, step())).body.operationId);
    const sampling = await server.sample('s');
    await Promise.all(holds.map(({ entered }) => entered));
    const next = await restarted(server);
    for (const id of [running, waiting]) expect((await next.result('s', id)).status).toBe('Completed');
    expect((await next.result('s', sampling, 'sampling-operations')).status).toBe('Completed');
    expect(await next.detail('s')).toMatchObject({
      TrainingSessionStatus: 'Running',
      BillableTokenUsage: { PrefillTokenCount: 3, SampleTokenCount: 8, TrainingTokenCount: 4 },
    });
  });

  it('draws nothing again: a sampling operation keeps the seed and the version of its acceptance', async () => {
    const engine = new FakeEngine();
    const server = await opened({ engine });
    await server.createSession('s');
    await server.train('s', 1, saveWeights());
    const calm = await server.result(
      's',
      await server.sample('s', { samplingParams: { maxTokens: 4, seed: 100 } }),
      'sampling-operations',
    );
    const hold = engine.hold('sample');
    const id = await server.sample('s');
    await hold.entered;
    await server.train('s', 2, pass());
    await server.train('s', 3, step());
    await server.train('s', 4, saveWeights());
    const next = await restarted(server, { drawSeed: () => 999 });
    const seeded = await next.result('s', id, 'sampling-operations');
    expect(seeded.status).toBe('Completed');
    expect(seeded.operationResult).toEqual(calm.operationResult);
  });

  it('goes on creating a session', async () => {
    const server = await opened();
    const hold = server.engine.hold('createSession');
    const pending = server.createSession('new').catch(() => undefined);
    await hold.entered;
    await server.close();
    hold.release();
    await pending;
    const next = await restarted(server);
    await next.status('new', 'Running');
  });

  it('ends a session that was being stopped', async () => {
    const server = await opened();
    await server.createSession('s');
    const late = String((await server.submit('s', 2, step())).body.operationId);
    await server.close();
    const database = openDatabase(join(server.dataDir, 'loopwright.db'));
    await database.updateTable('sessions').set({ status: 'Stopping', error: null }).execute();
    await database.destroy();
    const next = await restarted(server);
    await next.status('s', 'Stopped');
    expect((await next.result('s', late)).status).toBe('Skipped');
  });

  it('with other threads lets a session keep those of its plan, and gives the others to new ones', async () => {
    const made: number[] = [];
    const engineFactory: NonNullable<TestServerOptions['engineFactory']> = async (_card, { threads }) => {
      made.push(threads);
      return new FakeEngine({ incarnation: `engine of ${threads}`, threads });
    };
    const server = await opened({ threads: 2, engineFactory });
    await server.createSession('s');
    await server.train('s', 1, pass());
    const next = await restarted(server, { threads: 1, engineFactory });
    await next.train('s', 2, step());
    expect(made).toEqual([2, 2]);
    await next.createSession('new');
    await next.train('s', 3, pass());
    expect(made).toEqual([2, 2, 1]);
  });

  it('with another device lets a session keep that of its plan, and gives the other to new ones', async () => {
    const made: string[] = [];
    const engineFactory: NonNullable<TestServerOptions['engineFactory']> = async (_card, { device }) => {
      made.push(device);
      return new FakeEngine({ incarnation: `engine on ${device}`, device });
    };
    const server = await opened({ device: 'cuda', engineFactory });
    await server.createSession('s');
    await server.train('s', 1, pass());
    const next = await restarted(server, { engineFactory });
    await next.train('s', 2, step());
    expect(made).toEqual(['cuda', 'cuda']);
    await next.createSession('new');
    expect(made).toEqual(['cuda', 'cuda', 'cpu']);
  });

  it('says while it rebuilds what a new operation waits for', async () => {
    const server = await opened();
    await server.createSession('s');
    await server.train('s', 1, pass());
    const engine = new FakeEngine({ incarnation: 'second' });
    const hold = engine.hold('createSession');
    const next = await restarted(server, { engine });
    const id = String((await next.submit('s', 2, step())).body.operationId);
    await hold.entered;
    expect(await next.result('s', id, 'operations', 0)).toMatchObject({
      status: 'Pending',
      loopwright: { waitingFor: 'the session to be rebuilt after a restart' },
    });
    hold.release();
    expect((await next.result('s', id)).status).toBe('Completed');
  });
});

describe('an engine that dies', () => {
  it('in the middle of a pass takes nothing with it: the session is made anew and the pass run again', async () => {
    const calm = await opened();
    const shaken = await opened();
    for (const server of [calm, shaken]) {
      await server.createSession('s');
      await server.train('s', 1, pass());
    }
    const hold = shaken.engine.hold('pass');
    const id = String((await shaken.submit('s', 2, pass([9]))).body.operationId);
    await hold.entered;
    shaken.engine.crash();
    expect((await shaken.result('s', id)).status).toBe('Completed');
    await calm.train('s', 2, pass([9]));
    for (const server of [calm, shaken]) await server.train('s', 3, step());
    expect(shaken.engine.fingerprint('s')).toBe(calm.engine.fingerprint('s'));
  });

  it('for good is followed by another one: the session is made anew there', async () => {
    const engines: FakeEngine[] = [];
    const server = await opened({
      engineFactory: async (_card, { onExit }) => {
        engines.push(new FakeEngine({ incarnation: `engine-${engines.length}`, onExit }));
        return engines.at(-1)!;
      },
    });
    await server.createSession('s');
    await server.train('s', 1, pass());
    const [training, sampling] = [engines[0]!.hold('pass'), engines[0]!.hold('sample')];
    const id = String((await server.submit('s', 2, pass([9]))).body.operationId);
    const sample = await server.sample('s');
    await Promise.all([training.entered, sampling.entered]);
    engines[0]!.die();
    expect((await server.result('s', id)).status).toBe('Completed');
    expect((await server.result('s', sample, 'sampling-operations')).status).toBe('Completed');
    engines[1]!.die();
    await server.train('s', 3, step());
    expect(engines).toHaveLength(3);
    const calm = await opened();
    await calm.createSession('s');
    for (const [index, operation] of [pass(), pass([9]), step()].entries()) await calm.train('s', index + 1, operation);
    expect(engines[2]!.fingerprint('s')).toBe(calm.engine.fingerprint('s'));
  });

  it('in the middle of a save: the version has the number that it would have had', async () => {
    const server = await opened();
    await server.createSession('s');
    const hold = server.engine.hold('saveState');
    const id = String((await server.submit('s', 1, saveState)).body.operationId);
    await hold.entered;
    server.engine.crash();
    const saved = [await server.result('s', id), await server.train('s', 2, saveState)];
    const arns = saved.map(({ operationResult }) => String(operationResult?.saveState?.modelPackageArn));
    expect(arns.map((arn) => arn.slice(arn.lastIndexOf('/') + 1))).toEqual(['1', '2']);
  });

  it('between operations is noticed before the next one', async () => {
    const server = await opened();
    await server.createSession('s');
    await server.train('s', 1, pass());
    server.engine.crash();
    const done = await server.train('s', 2, step());
    expect(done.operationResult?.optimizerStep?.metrics).toMatchObject({ 'optim/step': 1 });
    expect(server.engine.fingerprint('s')).not.toContain('/0/1/0/0');
  });

  it('in the middle of sampling: the same tokens come from its successor', async () => {
    const server = await opened();
    await server.createSession('s');
    const config = { samplingParams: { maxTokens: 4, seed: 5 } };
    const calm = await server.result('s', await server.sample('s', config), 'sampling-operations');
    const hold = server.engine.hold('sample');
    const id = await server.sample('s', config);
    await hold.entered;
    server.engine.crash();
    expect(await server.result('s', id, 'sampling-operations')).toEqual(calm);
  });

  it('at every attempt fails the operation that kills it, and the session lives on', async () => {
    const server = await opened();
    await server.createSession('s');
    const holds = [1, 2, 3].map(() => server.engine.hold('pass'));
    const id = String((await server.submit('s', 1, pass())).body.operationId);
    for (const hold of holds) {
      await hold.entered;
      server.engine.crash();
    }
    expect(await server.result('s', id)).toMatchObject({
      status: 'Failed',
      loopwright: { error: { code: 'engine_failed' } },
    });
    expect((await server.train('s', 2, pass([1], 'forward'))).status).toBe('Completed');
  });

  it('while it starts is made good by another start, twice at most', async () => {
    const died = () => new LoopwrightError({ code: 'engine_failed', message: 'its process ended (signal SIGKILL)' });
    let deaths = 2;
    let starts = 0;
    const engineFactory = async () => {
      starts += 1;
      if (deaths-- > 0) throw died();
      return new FakeEngine();
    };
    const server = await opened({ engineFactory });
    await server.createSession('s');
    expect((await server.train('s', 1, pass())).status).toBe('Completed');
    expect(starts).toBe(3);

    deaths = 3;
    starts = 0;
    const other = await opened({ engineFactory });
    await expect(other.createSession('s')).rejects.toThrow();
    expect(await other.status('s', 'Failed')).toMatchObject({ ErrorDetails: died().message });
    expect(starts).toBe(3);
  });

  it('before a session runs fails that session with the reason', async () => {
    const server = await opened({
      engineFactory: () => Promise.reject(new LoopwrightError({ code: 'model_invalid', message: 'a shard is cut' })),
    });
    await expect(server.createSession('s')).rejects.toThrow();
    expect(await server.status('s', 'Failed')).toMatchObject({ ErrorDetails: 'a shard is cut' });
  });
});
