/** Embedded servers of several processes share a home folder without getting in each other's way. */
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { connect, withService } from 'loopwright';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { failureOf } from './support/failure.js';
import { makeTinyModel } from './support/tiny-model.js';

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeEach(async () => {
  folder = await temporaryDirectory();
  vi.stubEnv('LOOPWRIGHT_HOME', join(folder.path, 'home'));
  vi.stubEnv('LOOPWRIGHT_URL', '');
  await makeTinyModel(join(folder.path, 'home', 'models', 'someone', 'tiny'));
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await folder[Symbol.asyncDispose]();
});

test('the second connection takes a data directory of its own, and a later one finds the first again', async () => {
  const told: string[] = [];
  const onNotice = (line: string) => told.push(line);
  const first = await connect({ onNotice });
  const second = await connect({ onNotice });
  // Once, by the one that saves elsewhere: with its folder, the one it would have taken, and what shares a server.
  expect(told).toEqual([
    expect.stringMatching(/^Saved versions go to .*data-2, not to .*data, .*process \d+.*LOOPWRIGHT_URL/),
  ]);
  expect([first.dataDir, second.dataDir]).toEqual(['data', 'data-2'].map((name) => join(folder.path, 'home', name)));
  // Models of the home folder are installed in both, under owner and name.
  expect(await second.listBaseModels()).toEqual(['loopwright-tiny', 'someone/tiny']);
  await first.close();
  await second.close();
  await withService(async (third) => expect(third.dataDir).toBe(first.dataDir));
});

test('a version that was saved in another data directory is not found silently: the error says where to look', async () => {
  const first = await connect();
  const second = await connect();
  const training = await second.createLoraTrainingClient({ baseModel: 'someone/tiny', rank: 2 });
  const { modelPackageArn } = await training.saveState();
  await first.close();
  await second.close();

  const error = await withService((service) =>
    failureOf(() => service.createTrainingClientFromState({ modelPackageArn })),
  );
  expect(error.code).toBe('unknown_version');
  expect(error.details.remedy).toContain(second.dataDir);
  expect(error.details.got).toContain(`, in ${first.dataDir}`);
  await withService({ dataDir: second.dataDir! }, async (service) => {
    expect((await service.createTrainingClientFromState({ modelPackageArn })).baseModel).toBe('someone/tiny');
  });
});

test('withService closes the connection when the work fails, and tells the failure', async () => {
  let url = '';
  const error = await failureOf(() =>
    withService(async (service) => {
      url = service.baseUrl;
      await service.createLoraTrainingClient({ baseModel: 'no-such-model' });
    }),
  );
  expect(error.code).toBe('unknown_model');
  await expect(fetch(`${url}/health`)).rejects.toThrow();
});

test('a server by URL is used where the environment names one, unless a data directory is asked for', async () => {
  await using server = await connect({ apiKey: 'the-key-of-the-server' });
  vi.stubEnv('LOOPWRIGHT_URL', server.baseUrl);
  vi.stubEnv('LOOPWRIGHT_API_KEY', 'the-key-of-the-server');
  await using remote = await connect();
  expect(remote.baseUrl).toBe(server.baseUrl);
  expect(remote.dataDir).toBeUndefined();
  expect(await remote.listBaseModels()).toContain('someone/tiny');
  await using own = await connect({ dataDir: join(folder.path, 'own') });
  expect(own.baseUrl).not.toBe(server.baseUrl);
});

test('without the key, nobody else on the machine gets in', async () => {
  await using service = await connect();
  const answer = await fetch(`${service.baseUrl}/v1/sessions/any/trace`);
  expect(answer.status).toBe(401);
});
