/** Replays that are kept: two of them can be compared, and replayed again. */
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { FakeEngine, rejection } from '@loopwright/testkit';
import { afterEach, expect, it } from 'vitest';
import { pass, saveState, step } from '../testing/operations.js';
import { openTestServer, type TestServer } from '../testing/test-server.js';
import { compareRuns } from './compare-runs.js';
import { replay } from './replay.js';

/** Steps end with other weights. */
class Drifting extends FakeEngine {
  override async optimStep(...args: Parameters<FakeEngine['optimStep']>) {
    const result = await super.optimStep(...args);
    return { ...result, gradNorm: result.gradNorm + 1e-3 };
  }
}

let server: TestServer;
afterEach(() => server.close());

/** Session `first` saves a state, which `second` loads; both train. */
async function record(): Promise<void> {
  server = await openTestServer();
  await server.createSession('first');
  await server.train('first', 1, pass());
  await server.train('first', 2, step());
  const saved = await server.train('first', 3, saveState);
  const arn = String(saved.operationResult?.saveState?.modelPackageArn);
  const version = decodeURIComponent(arn.slice(arn.indexOf('model-package/') + 'model-package/'.length));
  await server.createSession('second');
  await server.train('second', 1, { type: 'load-state', version, loadOptimizer: true });
  await server.train('second', 2, pass());
  await server.train('second', 3, step());
  await server.train('second', 4, saveState);
  await server.close();
}

async function kept(name: string, engine: FakeEngine, session?: string, dataDir = server.dataDir): Promise<string> {
  const keepIn = join(dirname(server.dataDir), `${name}-${server.dataDir.split('/').at(-1)}`);
  await replay({
    ...{ dataDir, keepIn, cacheDirectory: join(dataDir, 'unused') },
    models: [{ id: 'fake-model', directory: server.modelDir }],
    createEngine: async () => engine,
    ...(session === undefined ? {} : { session }),
  });
  return keepIn;
}

it('a kept replay is the recorded run for diff, and can be replayed and kept again', async () => {
  await record();
  const once = await kept('once', new FakeEngine());
  for (const session of ['first', 'second']) {
    const comparison = await compareRuns({ dataDir: server.dataDir, session }, { dataDir: once, session });
    expect(comparison).toMatchObject({ same: true, plan: [], compared: session === 'first' ? 3 : 4 });
  }
  const twice = await kept('twice', new FakeEngine(), undefined, once);
  expect(await compareRuns({ dataDir: once, session: 'second' }, { dataDir: twice, session: 'second' })).toMatchObject({
    same: true,
    compared: 4,
  });
});

it('two replays that compute otherwise part where they do, though both have the inputs of the record', async () => {
  await record();
  const calm = await kept('calm', new FakeEngine());
  const drifting = await kept('drifting', new Drifting());
  const location = (dataDir: string) => ({ dataDir, session: 'second' });
  const comparison = await compareRuns(location(calm), location(drifting));
  expect(comparison).toMatchObject({ same: false, compared: 2, first: { place: '3', type: 'optim-step' } });
  const [finding, ...others] = comparison.first!.findings;
  expect(others).toEqual([]);
  expect(finding).toMatchObject({ type: 'result', difference: { first: { path: 'gradNorm' } } });
});

it('one session alone is kept with the versions of others that it read', async () => {
  await record();
  const alone = await kept('alone', new FakeEngine(), 'second');
  expect(await compareRuns({ dataDir: server.dataDir, session: 'second' }, { dataDir: alone })).toMatchObject({
    same: true,
    compared: 4,
  });
  const again = await kept('again', new FakeEngine(), undefined, alone);
  expect(await compareRuns({ dataDir: alone }, { dataDir: again })).toMatchObject({ same: true, compared: 4 });
});

it('a folder that holds something is refused, and a replay that ends early leaves nothing', async () => {
  await record();
  const [parent, name] = [dirname(server.dataDir), basename(server.dataDir)];
  const ofThisTest = async () => (await readdir(parent)).filter((each) => each.includes(name)); // others make folders there too
  const before = await ofThisTest();
  const engine = new FakeEngine();
  engine.failNext('pass', new Error('broken'));
  await rejection(kept('early', engine));
  expect(await ofThisTest()).toEqual(before);
  const full = join(parent, `full-${name}`);
  await mkdir(full);
  await writeFile(join(full, 'mine'), '');
  expect(await rejection(kept('full', new FakeEngine()))).toMatchObject({
    code: 'invalid_argument',
    details: { field: 'keep', got: 'a directory with 1 entries' },
  });
});
