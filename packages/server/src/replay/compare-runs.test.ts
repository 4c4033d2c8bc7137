/** Comparisons of recorded runs, on an engine without a model. */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { FakeEngine, rejection } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../store/open-database.js';
import { pass, step } from '../testing/operations.js';
import { opened, record, replayed } from '../testing/recording.js';
import type { TestServer } from '../testing/test-server.js';
import { compareRuns } from './compare-runs.js';
import type { ReplayOptions } from './replay.js';

describe('a comparison of two runs', () => {
  it('of the same operations finds nothing, whatever sessions, versions and descriptions are called and samples came in', async () => {
    const [a, b] = [await record(), await record({ session: 'another', seeds: [2, 1] })];
    expect(await compareRuns(a.server, b.server)).toEqual({
      sessions: ['s', 'another'],
      same: true,
      plan: [],
      creation: [],
      compared: 18,
    });
  });

  it('that differ in one learning rate names that step, both rates, and the weights that came of it', async () => {
    const [a, b] = [await record(), await record({ learningRate: 3e-4 })];
    const comparison = await compareRuns(a.server, b.server);
    expect(comparison).toMatchObject({
      same: false,
      first: {
        place: '8',
        type: 'optim-step',
        operationId: a.operationIds.get(8),
        otherId: b.operationIds.get(8),
        findings: [
          { type: 'inputs', difference: { first: { path: 'adam.learningRate', values: [2e-4, 3e-4] }, count: 1 } },
          { type: 'result', difference: { first: { path: 'metrics.optim/lr' } } },
        ],
      },
      weights: { operation: { place: '9' }, difference: { files: ['adapter.json'] } },
    });
    const finding = comparison.first!.findings[0]!;
    if (finding.type !== 'inputs') throw new Error('expected inputs first');
    expect(finding.difference!.first.size).toBeCloseTo(1e-4, 12);
    expect(finding.values[0]).not.toBe(finding.values[1]);
  });

  it('takes a plan without a device for one of the processor, and runs on the recorded device unless told otherwise', async () => {
    const { server } = await record();
    const dataDir = `${server.dataDir}-older`;
    await cp(server.dataDir, dataDir, { recursive: true });
    const database = openDatabase(join(dataDir, 'loopwright.db'));
    const { plan } = await database.selectFrom('sessions').select('plan').executeTakeFirstOrThrow();
    const { device, ...older } = JSON.parse(plan!) as Record<string, unknown>; // true: it is an object
    expect(device).toBe('cpu');
    const set = (to: object) =>
      database
        .updateTable('sessions')
        .set({ plan: JSON.stringify(to) })
        .execute();
    await set(older);
    expect(await compareRuns({ dataDir: server.dataDir }, { dataDir })).toMatchObject({ same: true, plan: [] });
    expect((await replayed({ ...server, dataDir })).plan).toMatchObject({ plan: { device: 'cpu' }, planChanges: [] });
    const inFloats = await compareRuns({ dataDir: server.dataDir }, { dataDir });
    await set({ ...older, samplerPrecision: 'float32' });
    expect(await compareRuns({ dataDir: server.dataDir }, { dataDir })).toEqual(inFloats);
    await set({ ...older, device: 'cuda', deterministic: false });
    await database.destroy();
    const made: unknown[] = [];
    const createEngine: NonNullable<ReplayOptions['createEngine']> = async (_card, plan) => {
      made.push(plan);
      return new FakeEngine(plan);
    };
    expect((await replayed({ ...server, dataDir }, { createEngine })).plan).toMatchObject({ planChanges: [] });
    expect((await replayed({ ...server, dataDir }, { createEngine, device: 'cpu' })).plan?.planChanges).toEqual([
      { path: 'device', values: ['cuda', 'cpu'] },
      { path: 'deterministic', values: [false, true] },
    ]);
    expect(made).toEqual([
      { threads: 1, device: 'cuda', samplerPrecision: 'float32' },
      { threads: 1, device: 'cpu', samplerPrecision: 'float32' },
    ]);
  });

  it('tells a plan that differs, and another seed of the adapter', async () => {
    const [a, b] = [await opened(), await opened()];
    await a.createSession('s');
    await b.createSession('s', { Loopwright: { Seed: 2 } });
    for (const server of [a, b]) {
      await server.train('s', 1, pass());
      await server.close();
    }
    const database = openDatabase(join(b.dataDir, 'loopwright.db'));
    const { plan } = await database.selectFrom('sessions').select('plan').executeTakeFirstOrThrow();
    const changed = JSON.stringify({ ...JSON.parse(plan!), threads: 7 });
    await database.updateTable('sessions').set({ plan: changed }).execute();
    await database.destroy();
    expect(await compareRuns(a, b)).toMatchObject({
      same: false,
      plan: [{ path: 'threads', values: [1, 7] }],
      creation: [{ path: 'seed', values: [1, 2] }],
      first: { place: '1', findings: [{ type: 'result' }] },
    });
  });

  it('names an operation that one of them lacks, and one of another type', async () => {
    const servers = [await opened(), await opened(), await opened()];
    const lists = [[pass(), step()], [pass()], [pass(), pass()]];
    for (const [index, server] of servers.entries()) {
      await server.createSession('s');
      for (const [i, operation] of lists[index]!.entries()) await server.train('s', i + 1, operation);
      await server.close();
    }
    const [a, b, c] = servers as [TestServer, TestServer, TestServer];
    expect((await compareRuns(a, b)).first).toMatchObject({
      place: '2',
      otherId: null,
      findings: [{ type: 'missing', values: ['optim-step', null] }],
    });
    expect((await compareRuns(b, a)).first).toMatchObject({ findings: [{ values: [null, 'optim-step'] }] });
    expect((await compareRuns(a, c)).first).toMatchObject({
      findings: [{ values: ['optim-step', 'forward-backward'] }],
    });
  });

  it('tells that prompts differ without telling what they say', async () => {
    const servers = [await opened(), await opened()];
    for (const [index, server] of servers.entries()) {
      await server.createSession('s');
      const prompt = { chunks: [{ type: 'encoded_text', tokens: [1, 2, 40 + index] }] };
      await server.result(
        's',
        await server.sample('s', { prompt, samplingParams: { maxTokens: 2, seed: 1 } }),
        'sampling-operations',
      );
      await server.close();
    }
    const { first } = await compareRuns(servers[0]!, servers[1]!);
    expect(first).toMatchObject({
      place: '0.1',
      findings: [{ type: 'inputs', difference: { first: { path: 'prompt[2]' } } }],
    });
    expect(JSON.stringify(first)).not.toMatch(/\b4[01]\b/);
  });

  it('asks which session is meant where there are several', async () => {
    const server = await opened();
    await server.createSession('one');
    await server.createSession('two');
    await server.close();
    const error = await rejection(compareRuns(server, server));
    expect(error).toMatchObject({ code: 'invalid_argument', details: { remedy: expect.stringContaining('one, two') } });
    const [a, b] = [
      { ...server, session: 'one' },
      { ...server, session: 'two' },
    ];
    expect(await compareRuns(a, b)).toMatchObject({ same: true, sessions: ['one', 'two'] });
  });
});
