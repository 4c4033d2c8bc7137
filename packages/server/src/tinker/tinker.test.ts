/** The Tinker wire: models, futures, order, repetitions, samplers, names, ends. */
import { join } from 'node:path';
import { LoopwrightError } from '@loopwright/protocol';
import { unpackTar } from 'modern-tar';
import { afterEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../store/open-database.js';
import { ManualClock } from '../testing/manual-clock.js';
import { type Body, openTestServer, type TestServerOptions } from '../testing/test-server.js';
import { openTinkerClient, type TinkerClient } from '../testing/tinker-client.js';

const open: TinkerClient[] = [];
async function opened(options: TestServerOptions = {}): Promise<TinkerClient> {
  const client = await openTinkerClient(options);
  open.push(client);
  return client;
}
afterEach(async () => {
  await Promise.all(open.splice(0).map(({ server }) => server.close()));
});

const detail = (body: Body) => String(body.detail);

describe('a model', () => {
  it('is called by its session and number, and made once for them', async () => {
    const client = await opened();
    const id = await client.model(0);
    expect(id).toBe(`${client.session}:train:0`);
    expect(await client.model(0)).toBe(id);
    expect(client.server.engine.sessionNames).toHaveLength(1);
    const lora = { lora_config: { rank: 4 } };
    const other = await client.call('create_model', {
      ...{ session_id: client.session, model_seq_id: 0, base_model: 'fake-model', ...lora },
    });
    expect(other).toMatchObject({ status: 409, body: { code: 'sequence_conflict' } });
    expect(await client.ok('get_info', { model_id: id })).toMatchObject({
      model_data: { model_name: 'fake-model', arch: 'llama' },
      ...{ is_lora: true, lora_rank: 8 },
    });
  });

  it.each([
    ['another base model', { base_model: 'no-such' }, 404],
    ['a rank of 0', { lora_config: { rank: 0 } }, 400],
    ['no such session', { session_id: 'x' }, 404],
  ])('is refused for %s', async (_, change, status) => {
    const client = await opened();
    const body = { session_id: client.session, model_seq_id: 0, base_model: 'fake-model', ...change };
    expect((await client.call('create_model', body)).status).toBe(status);
  });

  it('that is unloaded frees its place, and takes nothing more', async () => {
    const client = await opened({ maxLiveSessions: 1 });
    const id = await client.model(0);
    expect(await client.result(await client.ok('unload_model', { model_id: id }))).toMatchObject({ model_id: id });
    expect((await client.step(id, 1)).status).toBe(400);
    await client.model(1);
    expect(client.server.engine.sessionNames).toHaveLength(1);
  });
});

describe('operations of a model', () => {
  it('run by their numbers, however they arrive', async () => {
    const client = await opened();
    const id = await client.model();
    const later = await client.step(id, 2);
    const earlier = await client.pass(id, 1);
    expect(await client.result(earlier.body)).toMatchObject({ metrics: { 'num_tokens:sum': 3 } });
    expect(await client.result(later.body)).toMatchObject({ metrics: { 'optim/step': 1 } });
    const calls = client.server.engine.calls.filter((call) => /^(pass|optimStep)/.test(call));
    expect(calls.map((call) => call.split(':')[0])).toEqual(['pass', 'optimStep']);
  });

  it('that come again are the first one, and another under the same number is refused', async () => {
    const client = await opened();
    const id = await client.model();
    const [first, again] = [await client.step(id, 1), await client.step(id, 1)];
    expect(again.body.request_id).toBe(first.body.request_id);
    expect((await client.step(id, 1, 0.5)).status).toBe(409);
    await client.result(first.body);
    expect(client.server.engine.calls.filter((call) => call.startsWith('optimStep'))).toHaveLength(1);
  });

  it('that are refused use their number up, so that the next goes on', async () => {
    const client = await opened();
    const id = await client.model();
    const refused = await client.pass(id, 1, { mask: { data: [1, 1, 1], dtype: 'float32' } });
    expect(refused.status).toBe(400);
    expect(detail(refused.body)).toContain('mask');
    expect(await client.result((await client.step(id, 2)).body)).toMatchObject({ metrics: { 'optim/step': 1 } });
  });

  it('that fail say so in their result, with whose fault it is', async () => {
    const client = await opened();
    const id = await client.model();
    const error = new LoopwrightError({ code: 'out_of_memory', message: 'too long' });
    client.server.engine.failNext('pass', error);
    expect(await client.result((await client.pass(id, 1)).body)).toEqual({
      error: 'out_of_memory: too long',
      category: 'server',
    });
    expect(await client.result((await client.step(id, 2)).body)).toMatchObject({ category: 'user' });
  });

  it('are told from what is unknown: its result has gone', async () => {
    const client = await opened();
    for (const id of ['999', 'refusal.x', '0b5f2b52-7a0c-4a36-9a39-5b4a6f5fca5b']) {
      expect((await client.call('retrieve_future', { request_id: id })).status).toBe(410);
    }
  });
});

describe('a result that is not there yet', () => {
  it('is held, and then asked for again, with what it waits for', async () => {
    const clock = new ManualClock();
    const client = await opened({ clock, gapTimeoutMs: null });
    const id = await client.model();
    const { body } = await client.step(id, 2);
    let isAnswered = false;
    const answer = client.ok('retrieve_future', { request_id: body.request_id }).finally(() => {
      isAnswered = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isAnswered).toBe(false);
    while (!isAnswered) {
      clock.advance(25_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await answer).toMatchObject({
      ...{ type: 'try_again', request_id: body.request_id, queue_state: 'paused_capacity' },
      queue_state_reason: expect.stringContaining('1'),
    });
  });
});

describe('a sampler', () => {
  it('keeps the weights that it was made with', async () => {
    const client = await opened();
    const id = await client.model();
    const sampler = await client.sampler(id, 1);
    const tokens = async (seq: number) => {
      const { sequences } = await client.result(
        (await client.sample(sampler, seq, { sampling_params: { max_tokens: 4, seed: 1 } })).body,
      );
      return (sequences as readonly { readonly tokens: readonly number[] }[])[0]!.tokens;
    };
    const before = await tokens(0);
    await client.pass(id, 2);
    await client.result((await client.step(id, 3, 0.1)).body);
    expect(await tokens(1)).toEqual(before);
    await client.result(await client.ok('unload_model', { model_id: id }));
    expect(await tokens(2)).toEqual(before);
  });

  it('answers a number once, to the last digit of it', async () => {
    const client = await opened();
    const sampler = await client.sampler(await client.model(), 1);
    const numbers = [999_999_999_000_000_001n, 999_999_999_000_000_002n, 999_999_999_000_000_001n];
    const answers = [];
    for (const number of numbers) answers.push((await client.sample(sampler, number, { num_samples: 2 })).body);
    expect(answers[2]).toEqual(answers[0]);
    expect(answers[1]!.request_id).not.toBe(answers[0]!.request_id);
    expect(answers[0]!.sample_sequence_ids).toHaveLength(2);
    await client.result(answers[2]!);
    expect((await client.sample(sampler, numbers[0]!, { num_samples: 3 })).status).toBe(409);
  });

  it('of a save that comes again with another number of its own is the first one', async () => {
    const client = await opened();
    const id = await client.model();
    const save = (sampling_session_seq_id: number) =>
      client.ok('save_weights_for_sampler', { model_id: id, seq_id: 1, sampling_session_seq_id });
    const [first, again] = [await save(0), await save(1)];
    expect(again.request_id).toBe(first.request_id);
    expect(await client.result(again)).toMatchObject({ path: null, sampling_session_id: expect.any(String) });
  });

  it('takes many first requests at once, while the session that answers them is being made', async () => {
    const client = await opened({ sync: () => new Promise((resolve) => setImmediate(resolve)) });
    const sampler = await client.sampler(await client.model(), 1);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, number) => client.sample(sampler, number)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    for (const { body } of answers) expect(await client.result(body)).toMatchObject({ type: 'sample' });
  });

  it('of a base model or a saved path is made once for its number', async () => {
    const client = await opened();
    const body = { session_id: client.session, sampling_session_seq_id: 0, base_model: 'fake-model' };
    const { sampling_session_id: sampler } = await client.ok('create_sampling_session', body);
    expect(await client.ok('create_sampling_session', body)).toMatchObject({ sampling_session_id: sampler });
    expect(await client.ok(`samplers/${sampler}`, undefined, 'GET')).toEqual({
      sampler_id: sampler,
      base_model: 'fake-model',
    });
    const { body: request } = await client.sample(String(sampler), 0, { prompt_logprobs: true });
    expect(await client.result(request)).toMatchObject({
      prompt_logprobs: [null, expect.any(Number), expect.any(Number)],
    });
    const path = `tinker://${client.session}:train:0/sampler_weights/none`;
    const missing = await client.call('create_sampling_session', {
      ...body,
      sampling_session_seq_id: 1,
      model_path: path,
    });
    expect(missing.status).toBe(404);
  });

  it('gives its copies numbers of their own', async () => {
    const client = await opened();
    const sampler = await client.sampler(await client.model(), 1);
    const join = () => client.ok('join_sampling_session', { sampling_session_id: sampler });
    expect([await join(), await join()]).toMatchObject([{ client_counter: 1 }, { client_counter: 2 }]);
  });

  it('refuses what does not fit the context, in the words that clients know', async () => {
    const client = await opened();
    const sampler = await client.sampler(await client.model(), 1);
    const refused = await client.sample(sampler, 0, { sampling_params: { max_tokens: 126 } });
    expect(refused.status).toBe(400);
    expect(detail(refused.body)).toMatch(/prompt length plus max_tokens exceeds/);
    expect(detail(refused.body)).toMatch(/3 prompt tokens \+ 126 max_tokens > 128/);
  });
});

describe('what is saved under a name', () => {
  const saved = async (client: TinkerClient, id: string, seq: number, change: Body = {}) =>
    client.result(await client.ok('save_weights', { model_id: id, seq_id: seq, path: 'a', ...change }));

  it('has a path, once: another save of the name fails at once unless it is to go over it', async () => {
    const client = await opened();
    const id = await client.model();
    const path = `tinker://${id}/weights/a`;
    expect(await saved(client, id, 1)).toEqual({ path });
    expect(await saved(client, id, 1)).toEqual({ path });
    expect(await saved(client, id, 2)).toMatchObject({ category: 'user', error: expect.stringContaining('overwrite') });
    expect(await saved(client, id, 3, { overwrite: true })).toEqual({ path });
    const list = () => client.ok(`training_runs/${id}/checkpoints`, undefined, 'GET');
    expect((await list()).checkpoints).toHaveLength(1);
    await client.server.sweep();
    expect((await list()).checkpoints).toHaveLength(1);
  });

  it('is listed by the part: newest first, none twice, and none that another went over or that is gone', async () => {
    const clock = new ManualClock();
    const client = await opened({ clock });
    const id = await client.model();
    for (let seq = 1; seq <= 5; seq++) {
      clock.advance(1000);
      await saved(client, id, seq, { path: `n${seq}` });
    }
    await saved(client, id, 6, { path: 'n2', overwrite: true });
    await client.call(`training_runs/${id}/checkpoints/weights/n4`, undefined, 'DELETE');
    const part = async (query: string) => {
      const { checkpoints, cursor } = await client.ok(`checkpoints?${query}`, undefined, 'GET');
      const names = (checkpoints as Body[]).map(({ checkpoint_id }) => String(checkpoint_id).split('/').at(-1));
      return { names, total: (cursor as Body).total_count };
    };
    const everything = await part('limit=100');
    expect([...everything.names].sort()).toEqual(['n1', 'n2', 'n3', 'n5']);
    expect(everything.names.filter((name) => name !== 'n2')).toEqual(['n5', 'n3', 'n1']);
    const parts = [await part('limit=3&offset=0'), await part('limit=3&offset=3'), await part('limit=3&offset=6')];
    expect(parts.flatMap(({ names }) => names)).toEqual(everything.names);
    expect(parts.map(({ total }) => total)).toEqual([4, 4, 4]);
  });

  it('begins another model, whose own numbers begin at 1', async () => {
    const client = await opened();
    const id = await client.model();
    await client.pass(id, 1);
    await client.result((await client.step(id, 2)).body);
    const { path } = await saved(client, id, 3);
    const create = { session_id: client.session, model_seq_id: 7, path, optimizer: true };
    const made = await client.result(await client.ok('load_weights', create));
    expect(made).toMatchObject({ model_id: `${client.session}:train:7` });
    const both = async (model: string, seq: number) => {
      await client.pass(model, seq);
      await client.result((await client.step(model, seq + 1)).body);
    };
    await both(id, 4);
    await both(String(made.model_id), 1);
    const [one, other] = client.server.engine.sessionNames.map((name) => client.server.engine.fingerprint(name));
    expect(one).toBe(other);
    expect(await client.ok('weights_info', { tinker_path: path })).toMatchObject({
      is_lora: true,
      lora_rank: 8,
      base_model: 'fake-model',
    });
  });

  it('is listed, published, given an end and deleted', async () => {
    const client = await opened();
    const id = await client.model();
    await saved(client, id, 1);
    const at = `training_runs/${id}/checkpoints/weights/a`;
    expect((await client.call(`${at}/publish`)).status).toBe(204);
    expect((await client.call(`${at}/publish`)).status).toBe(409);
    expect((await client.call(`${at}/ttl`, { ttl_seconds: 7200 }, 'PUT')).status).toBe(204);
    const run = await client.ok(`training_runs/${id}`, undefined, 'GET');
    expect(run).toMatchObject({
      training_run_id: id,
      last_checkpoint: { public: true, expires_at: expect.any(String) },
    });
    expect(await client.ok('checkpoints', undefined, 'GET')).toMatchObject({ cursor: { total_count: 1 } });
    expect((await client.call(at, undefined, 'DELETE')).status).toBe(204);
    expect((await client.call(at, undefined, 'DELETE')).status).toBe(404);
  });

  it('can be downloaded by addresses that are signed', async () => {
    const client = await opened();
    const id = await client.model();
    await client.result(await client.ok('save_weights_external', { model_id: id, seq_id: 1, path: 'x' }));
    const at = `training_runs/${id}/checkpoints/external_weights/x/external_weights_urls`;
    const { urls } = await client.ok(at, undefined, 'GET');
    const all = Object.values(urls as Readonly<Record<string, string>>).map((url) => new URL(url));
    expect(all.length).toBeGreaterThan(0);
    const fetched = (url: URL) => client.server.raw(`${url.pathname}${url.search}`);
    expect((await fetched(all[0]!)).status).toBe(200);
    all[0]!.searchParams.set('path', '../secret');
    expect((await fetched(all[0]!)).status).toBe(401);
  });

  it('can be downloaded as one tar by an address that is signed and ends', async () => {
    const clock = new ManualClock();
    const client = await opened({ clock });
    const id = await client.model();
    await client.result(await client.ok('save_weights_for_sampler', { model_id: id, seq_id: 1, path: 'x' }));
    const at = `training_runs/${id}/checkpoints/sampler_weights`;
    const answer = await client.server.raw(`/api/v1/${at}/x/archive`);
    expect([answer.status, Date.parse(answer.headers.get('expires')!) - clock.now()]).toEqual([302, 900_000]);
    const url = new URL(answer.headers.get('location')!);
    const fetched = () => client.server.raw(`${url.pathname}${url.search}`);
    const tar = await fetched();
    const bytes = new Uint8Array(await tar.arrayBuffer());
    expect(tar.headers.get('content-length')).toBe(String(bytes.length));
    const names = (await unpackTar(bytes)).map(({ header }) => header.name);
    expect(names).toEqual(['checkpoint_complete', 'adapter.json']);
    expect((await client.server.raw(`/api/v1/${at}/y/archive`)).status).toBe(404);
    clock.advance(900_001);
    expect((await fetched()).status).toBe(401);
  });
});

describe('a session', () => {
  it('lists what was made in it', async () => {
    const client = await opened();
    const id = await client.model();
    const sampler = await client.sampler(id, 1);
    expect(await client.ok('sessions', undefined, 'GET')).toEqual({ sessions: [client.session] });
    expect(await client.ok(`sessions/${client.session}`, undefined, 'GET')).toMatchObject({
      ...{ training_run_ids: [id], sampler_ids: [sampler] },
    });
  });

  it('that its client finishes unloads its models and ends, whatever is told of it later', async () => {
    const client = await opened();
    const sampler = await client.sampler(await client.model(), 1);
    await client.ok(`sessions/${client.session}/finish`, { reason: { type: 'success' } });
    await client.ok(`sessions/${client.session}/finish`, { reason: { type: 'errored' } });
    expect(client.server.engine.sessionNames).toEqual([]);
    expect((await client.call('session_heartbeat', { session_id: client.session })).status).toBe(410);
    expect((await client.sample(sampler, 0)).status).toBe(404);
    const body = { session_id: client.session, model_seq_id: 1, base_model: 'fake-model' };
    expect((await client.call('create_model', body)).status).toBe(400);
  });

  it('that was marked as ended when the server died is ended by the next look', async () => {
    const client = await opened();
    await client.model();
    const database = openDatabase(join(client.server.dataDir, 'loopwright.db'));
    await database.updateTable('tinker_sessions').set({ finish: '{}' }).where('id', '=', client.session).execute();
    await database.destroy();
    expect(client.server.engine.sessionNames).toHaveLength(1);
    await client.server.sweep();
    expect(client.server.engine.sessionNames).toEqual([]);
  });

  it('whose models had ended when the server died loses the unnamed weights of its samplers, and keeps what has a name', async () => {
    const client = await opened();
    const id = await client.model();
    const sampler = await client.sampler(id, 1);
    const save = { model_id: id, seq_id: 2, path: 'kept' };
    await client.result(await client.ok('save_weights_for_sampler', save));
    await client.result(await client.ok('unload_model', { model_id: id }));
    await client.server.sweep();
    expect((await client.sample(sampler, 0)).status).toBe(200); // its session lives
    const database = openDatabase(join(client.server.dataDir, 'loopwright.db'));
    const left = () =>
      database.selectFrom('versions').select('description').where('deleted_at_ms', 'is', null).execute();
    expect(await left()).toHaveLength(2);
    await database.updateTable('tinker_sessions').set({ finish: '{}' }).where('id', '=', client.session).execute();
    await client.server.sweep();
    expect(await left()).toEqual([{ description: 'sampler_weights/kept' }]);
    await database.destroy();
  });

  it('answers its end soon, and lets what was accepted go on', async () => {
    const clock = new ManualClock();
    const client = await opened({ clock });
    const id = await client.model();
    const hold = client.server.engine.hold('pass');
    const { body } = await client.pass(id, 1);
    await hold.entered;
    let isAnswered = false;
    const finished = client.ok(`sessions/${client.session}/finish`, { reason: { type: 'success' } }).finally(() => {
      isAnswered = true;
    });
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
    expect(isAnswered).toBe(false);
    while (!isAnswered) {
      clock.advance(5000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await finished;
    hold.release();
    expect(await client.result(body)).toMatchObject({ metrics: { 'num_tokens:sum': 3 } });
  });

  it('whose client is silent makes room for another, and ends after an hour', async () => {
    const clock = new ManualClock();
    const client = await opened({ clock, maxLiveSessions: 1 });
    await client.model(0);
    const other = String((await client.ok('create_session', {})).session_id);
    const create = () => client.call('create_model', { session_id: other, model_seq_id: 0, base_model: 'fake-model' });
    expect(await create()).toMatchObject({ status: 400, body: { code: 'quota_exceeded' } });
    clock.advance(121_000);
    await client.ok('session_heartbeat', { session_id: other });
    expect((await create()).status).toBe(200);
    clock.advance(3_600_001);
    await client.server.sweep();
    expect((await client.call('session_heartbeat', { session_id: other })).status).toBe(410);
  });
});

describe('a client', () => {
  it('is told the models that there are, and what it need not wait for', async () => {
    const client = await opened();
    expect(await client.ok('get_server_capabilities', undefined, 'GET')).toEqual({
      supported_models: [{ model_name: 'fake-model', max_context_length: 128, trainable: true, sampleable: true }],
    });
    expect(await client.ok('client/config', {})).toMatchObject({ pjwt_auth_enabled: false });
    expect(await client.ok('telemetry', { events: [] })).toEqual({ status: 'accepted' });
    const unknown = await client.call('no/such/thing', {});
    expect(unknown.status).toBe(404);
    expect(detail(unknown.body)).toContain('not_found');
  });

  it.each([
    ['GET', 'audit', 'log'],
    ['GET', 'billing/usage/events', '/v1/usage'],
    ['GET', 'billing/usage/checkpoints/current', '/v1/usage'],
    ['POST', 'sessions/search', 'list_sessions'],
    ['GET', 'sessions/x/trace_export', 'get_session'],
  ])('is told that %s %s is not offered, and what to do instead', async (method, path, instead) => {
    const client = await opened();
    const { status, body } = await client.call(path, method === 'GET' ? undefined : {}, method);
    expect([status, body.code]).toEqual([404, 'not_found']);
    expect(detail(body)).toContain('what this server offers');
    expect(detail(body)).toContain(instead);
  });

  it('sends the key of the server with or without the beginning that its SDK asks for', async () => {
    const key = 'a-key-of-this-server';
    const server = await openTestServer({ apiKey: key });
    const status = async (headers: Record<string, string>) =>
      (await server.request('POST', '/api/v1/create_session', {}, headers)).status;
    expect(await status({ 'x-api-key': key })).toBe(200);
    expect(await status({ 'x-api-key': `tml-${key}` })).toBe(200);
    expect(await status({ 'x-api-key': 'tml-another' })).toBe(401);
    expect(await status({})).toBe(401);
    await server.close();
  });
});
