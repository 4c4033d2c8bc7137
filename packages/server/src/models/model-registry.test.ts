import { LoopwrightError } from '@loopwright/protocol';
import { FakeEngine, rejection } from '@loopwright/testkit';
import { hubContentArn } from '@loopwright/wires/sagemaker';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeModelDirectory, openTestServer, type TestServer, type TestServerOptions } from '../testing/test-server.js';
import { type ModelCache, ModelRegistry } from './model-registry.js';

const commits = ['a'.repeat(40), 'b'.repeat(40)] as const;

/** One repository, `org/small`, of which `main` may move. */
class FakeCache implements ModelCache {
  main: string | undefined = commits[0];
  readonly directories = new Map(commits.map((commit) => [commit as string, makeModelDirectory()]));

  async list() {
    return this.main === undefined ? [] : [{ id: 'org/small', directory: this.directories.get(this.main)! }];
  }

  async find(name: string) {
    const commit = name === 'org/small' ? this.main : name.startsWith('org/small@') ? name.slice(10) : undefined;
    const directory = commit === undefined ? undefined : this.directories.get(commit);
    return directory === undefined ? undefined : { id: `org/small@${commit}`, directory };
  }

  remedy(name: string) {
    return name.includes('/') ? `pull ${name}` : undefined;
  }
}

describe('a model cache', () => {
  it('is asked for names that no installed model has, and answers with an id that keeps its meaning', async () => {
    const cache = new FakeCache();
    const installed = { id: 'org/small', directory: makeModelDirectory() };
    expect(await new ModelRegistry({ models: [installed], allowPaths: false, cache }).find('org/small')).toEqual(
      installed,
    );
    const registry = new ModelRegistry({ models: [], allowPaths: false, cache });
    expect(await registry.find('org/small')).toMatchObject({ id: `org/small@${commits[0]}` });
    expect(await registry.card('org/small')).toMatchObject({ id: `org/small@${commits[0]}`, architecture: 'llama' });
    cache.main = commits[1];
    expect(await registry.find('org/small')).toMatchObject({ id: `org/small@${commits[1]}` });
    expect((await registry.card(`org/small@${commits[0]}`)).directory).toBe(cache.directories.get(commits[0]));
  });

  it('is listed behind installed models, without those that are installed as well', async () => {
    const cache = new FakeCache();
    const [installed, same] = ['other', 'org/small'].map((id) => ({ id, directory: makeModelDirectory() }));
    const ids = async (models: readonly { id: string; directory: string }[]) =>
      (await new ModelRegistry({ models, allowPaths: false, cache }).list()).map(({ id }) => id);
    expect(await ids([installed!])).toEqual(['other', 'org/small']);
    expect(await ids([same!])).toEqual(['org/small']);
  });

  it('that lacks a model tells how to get it, for names that it could have', async () => {
    const registry = new ModelRegistry({ models: [], allowPaths: false, cache: new FakeCache() });
    const remedyOf = async (name: string) => {
      const error = await rejection(registry.find(name));
      if (!LoopwrightError.isInstance(error)) throw error;
      expect(error.code).toBe('unknown_model');
      return error.details.remedy;
    };
    expect(await remedyOf('org/large')).toMatch(/^pull org\/large; or name one of these/);
    expect(await remedyOf('large')).toMatch(/^name one of these/);
  });
});

describe('a session on a model of the cache', () => {
  let server: TestServer | undefined;
  /** Ids of the models that engines were made for. */
  let loaded: string[];

  beforeEach(() => {
    loaded = [];
  });

  afterEach(() => server?.close());

  async function opened(options: TestServerOptions): Promise<TestServer> {
    const engine = new FakeEngine();
    server = await openTestServer({
      models: [],
      engine,
      engineFactory: async ({ id }) => {
        loaded.push(id);
        return engine;
      },
      ...options,
    });
    return server;
  }

  const describeModel = (of: TestServer, name: string) =>
    of.control('DescribeHubContent', { HubName: 'SageMakerPublicHub', HubContentType: 'Model', HubContentName: name });

  it('keeps to the commit that its name meant when it was created, also after a restart', async () => {
    const modelCache = new FakeCache();
    const first = await opened({ modelCache });
    const { body } = await describeModel(first, 'org/small');
    const ModelConfig = { BaseModelArn: body.HubContentArn };
    await first.createSession('one', { ModelConfig });
    expect(loaded).toEqual([`org/small@${commits[0]}`]);
    modelCache.main = commits[1];
    await first.close();
    const second = await opened({ modelCache, dataDir: first.dataDir });
    const sample = await second.sample('one'); // for which the model is loaded
    expect(await second.result('one', sample, 'sampling-operations')).toMatchObject({ status: 'Completed' });
    expect(loaded).toEqual([`org/small@${commits[0]}`, `org/small@${commits[0]}`]);
    const listed = { ModelConfig: { BaseModelArn: hubContentArn({ name: 'org-small', version: '1.0.0' }) } };
    await second.createSession('two', listed);
    expect(loaded.at(-1)).toBe(`org/small@${commits[1]}`);
  });

  it('gets the tokenizer of that commit, and by its plain name that of now', async () => {
    const of = await opened({ modelCache: new FakeCache() });
    const { body } = await describeModel(of, `org/small@${commits[1]}`);
    const { HuggingfaceId } = JSON.parse(String(body.HubContentDocument)) as { HuggingfaceId: string };
    expect(HuggingfaceId).toMatch(/^loopwright\/hub-[0-9a-f]{12}-small$/);
    for (const id of [HuggingfaceId, 'org/small'])
      expect(await of.request('GET', `/${id}/resolve/main/tokenizer.json`)).toMatchObject({ status: 200 });
  });

  it('is refused while it is not there, and nothing is fetched', async () => {
    const modelCache = new FakeCache();
    modelCache.main = undefined;
    const of = await opened({ modelCache });
    expect((await describeModel(of, 'org/small')).body).toMatchObject({
      code: 'unknown_model',
      details: { remedy: expect.stringContaining('pull org/small') },
    });
    modelCache.main = commits[0];
    expect((await describeModel(of, 'org/small')).status).toBe(200);
  });
});
