import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstat, mkdir, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LoopwrightError } from '@loopwright/protocol';
import {
  FakeHub,
  type FakeRepository,
  rejection,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@loopwright/testkit';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { HubCache } from './hub-cache.js';
import { HubClient } from './hub-client.js';
import type { HubSettings } from './hub-settings.js';
import { type PullEvent, type PullOptions, pullModel } from './pull-model.js';

const name = 'someone/small';
const commit = 'a'.repeat(40);
const weights = Buffer.alloc(300_000, 'weights ');
const files = {
  'config.json': JSON.stringify({ architectures: ['LlamaForCausalLM'], model_type: 'llama' }),
  'generation_config.json': '{}',
  'tokenizer.json': '{"version":"1.0"}',
  'tokenizer_config.json': '{}',
  'chat_template.jinja': '{{ messages }}',
  'model.safetensors': weights,
  'pytorch_model.bin': 'another format',
  'README.md': '# Small',
  'onnx/model.onnx': 'another format',
};
const shards = {
  ...files,
  'model.safetensors': undefined,
  'model.safetensors.index.json': JSON.stringify({
    weight_map: {
      a: 'model-00001-of-00002.safetensors',
      b: 'model-00002-of-00002.safetensors',
      c: 'model-00001-of-00002.safetensors',
    },
  }),
  'model-00001-of-00002.safetensors': 'first',
  'model-00002-of-00002.safetensors': 'second',
  'consolidated.safetensors': 'the same again',
};

let folder: TemporaryDirectory;
let hub: FakeHub;
let settings: HubSettings;
let pauses: number[];

beforeEach(async () => {
  folder = await temporaryDirectory();
  hub = await FakeHub.open({ repositories: { [name]: { commit, files, license: 'apache-2.0' } } });
  settings = { endpoint: hub.url, token: undefined, offline: false, cacheDirectory: join(folder.path, 'hub') };
  pauses = [];
});

afterEach(async () => {
  await hub[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const repositoryFolder = () => join(settings.cacheDirectory, 'models--someone--small');
const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');
/** Compared at once: byte by byte takes seconds. */
const holdsWeights = async (path: string) => (await readFile(path)).equals(weights);
const weightsBlob = () => join(repositoryFolder(), 'blobs', sha256(weights));

function pull(options: Partial<PullOptions> = {}, of = name) {
  const pause = async (ms: number) => {
    pauses.push(ms);
  };
  return pullModel(of, { settings, pause, ...options });
}

async function failureOf(promise: Promise<unknown>): Promise<LoopwrightError> {
  const error = await rejection(promise);
  if (LoopwrightError.isInstance(error)) return error;
  throw error;
}

describe('a pull', () => {
  it('fetches what a model needs and nothing else, in the layout of the shared cache', async () => {
    const { id, directory } = await pull();
    expect(id).toBe(`${name}@${commit}`);
    expect(directory).toBe(join(repositoryFolder(), 'snapshots', commit));
    expect((await readdir(directory)).sort()).toEqual([
      'chat_template.jinja',
      'config.json',
      'generation_config.json',
      'model.safetensors',
      'tokenizer.json',
      'tokenizer_config.json',
    ]);
    expect(await readlink(join(directory, 'model.safetensors'))).toBe(join('..', '..', 'blobs', sha256(weights)));
    expect(await holdsWeights(join(directory, 'model.safetensors'))).toBe(true);
    expect(await readFile(join(repositoryFolder(), 'refs', 'main'), 'utf8')).toBe(commit);
    // `git hash-object` of the same content, which is what other tools call the blob.
    expect(await readlink(join(directory, 'generation_config.json'))).toMatch(
      /9e26dfeeb6e641a33dae4961196235bdb965b21b$/,
    );
    expect((await readdir(join(repositoryFolder(), 'blobs'))).filter((blob) => blob.includes('.'))).toEqual([]);
  });

  it('takes the shards that the index names', async () => {
    hub.repositories[name] = { commit, files: defined(shards) };
    const { directory } = await pull();
    const found = (await readdir(directory)).filter((file) => file.endsWith('.safetensors'));
    expect(found.sort()).toEqual(['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors']);
  });

  it('tells how far it is, up to the end, and counts what was there', async () => {
    const events: PullEvent[] = [];
    hub.failures['model.safetensors'] = [{ status: 404 }];
    await rejection(pull());
    await pull({ onEvent: (event) => events.push(event) });
    const [start, ...progress] = events;
    expect(start).toMatchObject({ type: 'pull-start', model: name, commit, files: 6, license: { id: 'apache-2.0' } });
    const totalBytes = start?.type === 'pull-start' ? start.totalBytes : 0;
    expect(totalBytes).toBeGreaterThan(weights.length);
    expect(progress[0]).toMatchObject({
      file: 'model.safetensors',
      doneBytes: totalBytes - weights.length,
      totalBytes,
    });
    expect(progress.at(-1)).toMatchObject({ type: 'pull-progress', doneBytes: totalBytes });
  });

  it('asks for nothing that is there already, whoever fetched it', async () => {
    await pull();
    hub.requests.length = 0;
    await pull();
    expect(hub.requests.map(({ kind }) => kind)).toEqual(['api']);
  });

  it('of a revision leaves what main means alone', async () => {
    await pull();
    const other = 'b'.repeat(40);
    hub.repositories[name] = { commit: other, files, revisions: ['refs/pr/1'] };
    expect((await pull({}, `${name}@refs/pr/1`)).id).toBe(`${name}@${other}`);
    const cache = new HubCache(settings.cacheDirectory);
    expect((await cache.find(name))?.id).toBe(`${name}@${commit}`);
    expect((await cache.find(`${name}@refs/pr/1`))?.id).toBe(`${name}@${other}`);
    expect((await cache.find(`${name}@${other}`))?.id).toBe(`${name}@${other}`);
  });

  it('sends the token to the hub and not to the host that it redirects to', async () => {
    await pull({ settings: { ...settings, token: 'hf_secret' } });
    const authorized = hub.requests.map(({ kind, path, authorization }) => [
      kind,
      path.split('/').at(-1),
      authorization,
    ]);
    expect(authorized).toContainEqual(['api', 'main', 'Bearer hf_secret']);
    expect(authorized).toContainEqual(['hub', 'model.safetensors', 'Bearer hf_secret']);
    expect(authorized).toContainEqual(['store', 'model.safetensors', undefined]);
  });

  it('refuses what does not fit the disk before it fetches any of it', async () => {
    const error = await failureOf(pull({ freeBytes: async () => weights.length }));
    expect(error).toMatchObject({ code: 'disk_full', details: { got: String(weights.length) } });
    expect(hub.requests.map(({ kind }) => kind)).toEqual(['api']);
  });

  it('says what to do about a cache that can not be written', async () => {
    await writeFile(settings.cacheDirectory, 'a file');
    const error = await failureOf(pull());
    expect(error).toMatchObject({ code: 'invalid_argument', details: { field: 'HF_HUB_CACHE' } });
    expect(error.details).toMatchObject({ got: expect.stringContaining('ENOTDIR'), remedy: expect.any(String) });
  });

  it('needs no room for what an earlier one left', async () => {
    hub.cuts['model.safetensors'] = [200_000, 0, 0, 0, 0, 0];
    await rejection(pull());
    const { size } = await stat(`${weightsBlob()}.partial`);
    expect(size).toBeGreaterThan(0);
    await pull({ freeBytes: async () => weights.length - size });
    expect(await holdsWeights(weightsBlob())).toBe(true);
  });
});

describe('a cut connection', () => {
  it('is taken up where it ended', async () => {
    hub.cuts['model.safetensors'] = [100_000, 50_000];
    await pull();
    const ranges = hub.downloadsOf('model.safetensors').map(({ range }) => range);
    expect(ranges).toHaveLength(3);
    expect(ranges[0]).toBeUndefined();
    expect(ranges[1]).toMatch(/^bytes=\d+-$/);
    expect(await holdsWeights(weightsBlob())).toBe(true);
  });

  it('is given up after five attempts that bring nothing, with growing pauses, and the next pull goes on from there', async () => {
    hub.cuts['model.safetensors'] = [100_000, 0, 0, 0, 0];
    const error = await failureOf(pull());
    expect(error).toMatchObject({ code: 'connection_lost', details: { remedy: expect.stringContaining('is kept') } });
    expect(pauses).toHaveLength(4);
    expect(pauses.every((ms, i) => i === 0 || ms > pauses[i - 1]!)).toBe(true);
    expect(await readdir(join(repositoryFolder(), 'blobs'))).toContain(`${sha256(weights)}.partial`);
    hub.requests.length = 0;
    await pull();
    expect(hub.downloadsOf('model.safetensors').map(({ range }) => range)).toEqual([
      expect.stringMatching(/^bytes=\d+-$/),
    ]);
    expect(await holdsWeights(weightsBlob())).toBe(true);
  });

  it('to a server without ranges begins again', async () => {
    hub.cuts['model.safetensors'] = [100_000];
    hub.ignoresRanges = true;
    await pull();
    expect(await holdsWeights(weightsBlob())).toBe(true);
  });

  it('is noticed when it only falls silent', async () => {
    hub.stalls = true;
    const client = new HubClient({ ...settings, stallMs: 50 });
    expect(await failureOf(pull({ client }))).toMatchObject({
      code: 'connection_lost',
      details: { got: 'no byte for 0.05 s' },
    });
  });

  it('is retried when the hub asks for patience, after the time that it states', async () => {
    hub.failures['/resolve/'] = [{ status: 429, headers: { 'retry-after': '7' } }, { status: 503 }];
    await pull();
    expect(pauses[0]).toBe(7000);
    expect(pauses).toHaveLength(2);
  });
});

describe('wrong bytes', () => {
  it('never become a model', async () => {
    hub.wrong['model.safetensors'] = Buffer.alloc(weights.length, 'something else');
    const error = await failureOf(pull());
    expect(error).toMatchObject({
      code: 'model_invalid',
      details: { field: 'model.safetensors', got: expect.stringContaining('hash') },
    });
    expect(
      (await readdir(join(repositoryFolder(), 'blobs'))).filter((blob) => blob.startsWith(sha256(weights))),
    ).toEqual([]);
    expect(await new HubCache(settings.cacheDirectory).find(name)).toBeUndefined();
  });

  it.each([
    ['config.json', 'with other content', Buffer.alloc(files['config.json'].length, 'x')],
    ['model.safetensors', 'beyond the end', Buffer.alloc(weights.length + 1, 'weights ')],
  ])('of %s are refused %s', async (file, _, bytes) => {
    hub.wrong[file] = bytes;
    expect(await failureOf(pull())).toMatchObject({ code: 'model_invalid', details: { field: file } });
  });

  it('that an earlier pull left are thrown away, and the file is fetched from its beginning', async () => {
    await mkdir(join(repositoryFolder(), 'blobs'), { recursive: true });
    await writeFile(`${weightsBlob()}.partial`, Buffer.alloc(1000, 'wrong'));
    await pull();
    expect(hub.downloadsOf('model.safetensors').map(({ range }) => range)).toEqual(['bytes=1000-', undefined]);
    expect(await holdsWeights(weightsBlob())).toBe(true);
  });
});

describe('several pulls', () => {
  /** A hundredth of the time. */
  const pause = (ms: number) => sleep(ms / 100);

  it('of one model at once fetch each file once', async () => {
    const [one, other] = await Promise.all([pull({ pause }), pull({ pause })]);
    expect(one.directory).toBe(other.directory);
    expect(hub.downloadsOf('model.safetensors')).toHaveLength(1);
    expect(await holdsWeights(join(one.directory, 'model.safetensors'))).toBe(true);
  });

  it('go on when the one that they wait for is cancelled', async () => {
    const controller = new AbortController();
    let isFirst = true;
    hub.onFile = (file) => {
      if (file === 'model.safetensors' && isFirst) {
        isFirst = false;
        controller.abort();
      }
    };
    const cancelled = failureOf(pull({ signal: controller.signal, pause }));
    const other = pull({ pause });
    expect((await cancelled).code).toBe('cancelled');
    expect(await holdsWeights(join((await other).directory, 'model.safetensors'))).toBe(true);
  });

  it('take over what a process that died left, and wait for one that lives', async () => {
    const host = sha256(hostname()).slice(0, 8);
    const { pid } = spawnSync(process.execPath, ['-e', '']);
    await mkdir(join(repositoryFolder(), 'blobs'), { recursive: true });
    await writeFile(`${weightsBlob()}.partial-${host}-${pid}-00000000`, weights.subarray(0, 5000));
    await pull();
    expect(hub.downloadsOf('model.safetensors').map(({ range }) => range)).toEqual(['bytes=5000-']);

    hub.repositories['someone/other'] = { commit, files };
    const blobs = join(settings.cacheDirectory, 'models--someone--other', 'blobs');
    await mkdir(blobs, { recursive: true });
    await writeFile(join(blobs, `${sha256(weights)}.partial-${host}-${process.pid}-00000000`), 'x');
    const events: PullEvent[] = [];
    // What the other one was downloading.
    const finish = () => writeFile(join(blobs, sha256(weights)), weights);
    hub.requests.length = 0;
    await pull({ pause: finish, onEvent: (event) => events.push(event) }, 'someone/other');
    expect(events).toContainEqual({ type: 'pull-wait', file: 'model.safetensors' });
    expect(hub.downloadsOf('model.safetensors')).toEqual([]);
  });
});

describe('a gated model', () => {
  beforeEach(() => {
    hub.repositories[name] = { commit, files, gated: 'manual', license: 'gemma' };
  });

  it('is refused, with what to do, and nothing of it is fetched', async () => {
    const error = await failureOf(pull());
    expect(error.code).toBe('model_gated');
    for (const part of [`${hub.url}/${name}`, 'HF_TOKEN', `loopwright models pull ${name} --accept-license`])
      expect(error.details.remedy).toContain(part);
    expect(hub.requests.map(({ kind }) => kind)).toEqual(['api']);
  });

  it('comes when its licence is accepted, and that is recorded: who, when and which', async () => {
    await pull({ acceptLicense: true });
    const record: unknown = JSON.parse(
      await readFile(join(repositoryFolder(), 'license-acceptances', `${commit}.json`), 'utf8'),
    );
    expect(record).toMatchObject({
      model: name,
      commit,
      license: { id: 'gemma' },
      acceptedBy: `${userInfo().username}@${hostname()}`,
    });
    expect(Date.now() - Date.parse((record as { acceptedAt: string }).acceptedAt)).toBeLessThan(60_000);
  });

  it('asks once for each licence', async () => {
    await pull({ acceptLicense: true });
    const other = 'b'.repeat(40);
    hub.repositories[name] = { commit: other, files, gated: 'manual', license: 'gemma' };
    expect((await pull()).commit).toBe(other);
    hub.repositories[name] = { commit: other, files, gated: 'manual', license: 'gemma-2' };
    expect((await failureOf(pull())).code).toBe('model_gated');
  });

  it('is refused as such when the hub keeps its files', async () => {
    hub.failures['/resolve/'] = [{ status: 403, headers: { 'x-error-code': 'GatedRepo' } }];
    expect((await failureOf(pull({ acceptLicense: true }))).code).toBe('model_gated');
  });
});

describe('what the hub refuses', () => {
  const withToken = () => ({ settings: { ...settings, token: 'hf_secret' } });

  test.each([
    ['a model that is not there, or private', {}, [], 'nobody/nothing', 'unknown_model', 'set HF_TOKEN'],
    ['a revision that is not there', {}, [], `${name}@v9`, 'unknown_model', '/tree/main'],
    ['a token that is not valid', { token: true }, [{ status: 401 }], name, 'unauthenticated', 'settings/tokens'],
    ['a token that may not read it', { token: true }, [{ status: 403 }], name, 'unauthenticated', 'settings/tokens'],
    ['too many requests', {}, [{ status: 429 }], name, 'limit_exceeded', 'wait'],
    ['a hub that is down', {}, [{ status: 502 }], name, 'connection_lost', 'later'],
  ] as const)('%s', async (_, { token = false }: { token?: boolean }, failures, of, code, remedy) => {
    hub.failures['/api/'] = [...failures];
    const error = await failureOf(pull(token ? withToken() : {}, of));
    expect(error.code).toBe(code);
    expect(error.details.remedy).toContain(remedy);
    expect(JSON.stringify(error)).not.toContain('hf_secret');
    expect(await new HubCache(settings.cacheDirectory).list()).toEqual([]);
  });

  it('says so of a host that does not answer', async () => {
    await hub[Symbol.asyncDispose]();
    expect(await failureOf(pull())).toMatchObject({ code: 'connection_lost', details: { got: 'ECONNREFUSED' } });
  });

  it('is not taken from a page that is no hub', async () => {
    const answer = async () => new Response('<html>Sign in</html>');
    const client = new HubClient({ ...settings, fetch: answer });
    expect(await failureOf(pull({ client }))).toMatchObject({
      code: 'model_invalid',
      details: { field: 'HF_ENDPOINT' },
    });
    expect(() => new HubClient({ endpoint: 'not a url', token: undefined })).toThrow(/HF_ENDPOINT/);
  });

  it.each([
    ['no safetensors', { 'config.json': '{}', 'model.gguf': 'x' }, /GGUF/],
    ['no config', { 'model.safetensors': 'x' }, /safetensors/],
    [
      'a shard that is not there',
      { 'config.json': '{}', 'model.safetensors.index.json': '{"weight_map":{"a":"b.safetensors"}}' },
      /./,
    ],
    [
      'an index that leads elsewhere',
      { 'config.json': '{}', 'model.safetensors.index.json': '{"weight_map":{"a":"../b.safetensors"}}' },
      /./,
    ],
  ])('is a repository with %s', async (_, content, remedy) => {
    hub.repositories[name] = { commit, files: content };
    const error = await failureOf(pull());
    expect(error.code).toBe('model_invalid');
    expect(error.details.remedy).toMatch(remedy);
  });

  it.each(['small', './models/mine', '/models/mine', 'a/b/c', 'a/..', 'a--b/c', 'a/b@', 'a/b@../../x', 'a/b@x y', ''])(
    'is the name %j',
    async (of) => {
      expect((await failureOf(pull({}, of))).code).toBe('invalid_argument');
      expect(hub.requests).toEqual([]);
    },
  );
});

describe('offline', () => {
  const offline = () => ({ settings: { ...settings, offline: true } });

  it('a pull finds what is there', async () => {
    const { directory } = await pull();
    hub.requests.length = 0;
    expect(await pull(offline())).toMatchObject({ directory, id: `${name}@${commit}` });
    expect(hub.requests).toEqual([]);
  });

  it('a pull of another model says why it fails', async () => {
    const error = await failureOf(pull(offline()));
    expect(error).toMatchObject({
      code: 'unknown_model',
      details: { remedy: expect.stringContaining('HF_HUB_OFFLINE') },
    });
    expect(hub.requests).toEqual([]);
  });
});

describe('the cache', () => {
  /** As other tools leave it. */
  async function fetchedElsewhere(of: string, content: FakeRepository['files'], ref: string | undefined = 'main') {
    const root = join(settings.cacheDirectory, `models--${of.replace('/', '--')}`);
    await mkdir(join(root, 'snapshots', commit), { recursive: true });
    await mkdir(join(root, 'refs'), { recursive: true });
    for (const [file, bytes] of Object.entries(content)) {
      if (!file.includes('/')) await writeFile(join(root, 'snapshots', commit, file), bytes);
    }
    if (ref !== undefined) await writeFile(join(root, 'refs', ref), commit);
    return join(root, 'snapshots', commit);
  }

  const cache = () => new HubCache(settings.cacheDirectory);

  it('finds models that other tools fetched, and fetches nothing again', async () => {
    const directory = await fetchedElsewhere(name, files);
    expect(await cache().find(name)).toEqual({ id: `${name}@${commit}`, directory });
    await pull();
    expect(hub.requests.map(({ kind }) => kind)).toEqual(['api']);
    expect((await lstat(join(directory, 'model.safetensors'))).isFile()).toBe(true);
  });

  it('has no model of which a file is missing', async () => {
    const whole = defined(shards);
    for (const file of ['config.json', 'model.safetensors.index.json', 'model-00002-of-00002.safetensors']) {
      const { [file]: _, ...rest } = whole;
      await fetchedElsewhere(`without/${file}`, rest);
      expect(await cache().find(`without/${file}`), file).toBeUndefined();
    }
    await fetchedElsewhere('with/all', whole);
    expect(await cache().find('with/all')).toBeDefined();
  });

  it('lists language models by their plain names, and by commit where there is no main', async () => {
    expect(await cache().list()).toEqual([]);
    await fetchedElsewhere(name, files);
    await fetchedElsewhere('someone/tagged', files, 'v1');
    await fetchedElsewhere('someone/half', { 'config.json': files['config.json'] });
    await fetchedElsewhere('someone/encoder', { ...files, 'config.json': '{"architectures":["BertModel"]}' });
    await mkdir(join(settings.cacheDirectory, 'datasets--someone--data', 'snapshots'), { recursive: true });
    expect((await cache().list()).map(({ id }) => id)).toEqual([name, `someone/tagged@${commit}`]);
  });

  it('says how to get a model by its name, and nothing of what is none', () => {
    expect(cache().remedy('someone/else@v1')).toContain('loopwright models pull someone/else@v1');
    expect(cache().remedy('tiny')).toBeUndefined();
    expect(cache().remedy('./models/mine')).toBeUndefined();
  });
});

/** Without the members that are undefined. */
function defined(of: Readonly<Record<string, string | Buffer | undefined>>): Record<string, string | Buffer> {
  return Object.fromEntries(Object.entries(of).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])));
}
