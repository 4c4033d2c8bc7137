/** Inputs on which servers of this shape have gone wrong, by their number in the list of such cases. */

import { LoopwrightError } from '@loopwright/protocol';
import { encodeChatCompletion, encodeOpenAIError } from '@loopwright/wires/openai';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ScriptedServer, startScriptedServer } from './scripted-server.js';

let server: ScriptedServer;
const model = 'scripted';
const messages = [{ role: 'user', content: 'Hello' }];
const add = { type: 'function', function: { name: 'add', parameters: { type: 'object' } } };

beforeAll(async () => {
  server = await startScriptedServer();
});
afterAll(async () => {
  await server.close();
});

function post(body: object, signal?: AbortSignal): Promise<Response> {
  return fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages, ...body }),
    ...(signal === undefined ? {} : { signal }),
  });
}

interface Message {
  readonly content: string | null;
  readonly tool_calls?: readonly { readonly function: { readonly name: string; readonly arguments: string } }[];
  readonly tool_call_errors?: readonly { readonly reason: string; readonly raw: string }[];
}

async function answer(body: object): Promise<{ readonly message: Message; readonly finish_reason: string }> {
  const response = await post(body);
  expect(response.status).toBe(200);
  const { choices } = (await response.json()) as { choices: { message: Message; finish_reason: string }[] }; // as the API has it
  return choices[0]!;
}

/** The data of each event. */
async function events(body: object): Promise<string[]> {
  const response = await post({ ...body, stream: true });
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
  const parts = (await response.text()).split('\n\n');
  return parts.filter((part) => part.startsWith('data: ')).map((part) => part.slice(6));
}

describe('F1', () => {
  test('content in parts of text, and the role developer, are as the plain string', async () => {
    server.say('ok');
    await answer({
      messages: [
        { role: 'system', content: 'Be brief' },
        { role: 'user', content: 'Hello' },
      ],
    });
    const plain = server.lastPrompt();
    server.say('ok');
    const parts = ['Hel', 'lo'].map((text) => ({ type: 'text', text }));
    await answer({
      messages: [
        { role: 'developer', content: [{ type: 'text', text: 'Be brief' }] },
        { role: 'user', content: parts },
      ],
    });
    expect(server.lastPrompt()).toBe(plain);
    const image = await post({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] });
    expect(image.status).toBe(400);
    expect(await image.json()).toMatchObject({
      error: { param: 'messages[0].content[0].type', message: expect.stringContaining('image_url') },
    });
  });
});

describe('F2', () => {
  test('one limit, or two that are equal; without any the rest of the context', async () => {
    for (const limits of [
      { max_completion_tokens: 2 },
      { max_tokens: 2 },
      { max_tokens: 2, max_completion_tokens: 2 },
    ]) {
      server.say('long enough');
      expect(await answer(limits)).toMatchObject({ message: { content: 'lo' }, finish_reason: 'length' });
    }
    server.say('long enough');
    expect(await answer({})).toMatchObject({ message: { content: 'long enough' }, finish_reason: 'stop' });
    const { prompt, params } = server.engine.requests.at(-1)!;
    expect(params.maxTokens).toBe(512 - prompt.length);
  });

  test('two that differ, and 0, are refused with both said', async () => {
    const different = await post({ max_tokens: 2, max_completion_tokens: 3 });
    expect(different.status).toBe(400);
    expect(await different.json()).toMatchObject({
      error: {
        type: 'invalid_request_error',
        param: 'max_completion_tokens',
        message: expect.stringContaining('3 beside 2'),
      },
    });
    expect((await post({ max_tokens: 0 })).status).toBe(400);
  });

  test('unknown fields are ignored, and listed', async () => {
    server.say('ok');
    const response = await post({ brand_new: 1, 'odd\nname': 2 });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-loopwright-ignored-fields')).toBe('brand_new, odd?name');
    server.say('ok');
    expect((await post({ stream: true, brand_new: 1 })).headers.get('x-loopwright-ignored-fields')).toBe('brand_new');
  });
});

describe('F4', () => {
  const broken = [
    ['arguments that are cut off', '<tool_call>{"name": "add", "arguments": {"a": 1', 'cut', 'length'],
    ['two JSON objects in a row', '<tool_call>{"name":"add"}{"name":"add"}</tool_call>', 'not-json', 'stop'],
    ['a doubled name', '<tool_call>{"name":"add","name":"add","arguments":{}}</tool_call>', 'doubled-key', 'stop'],
  ] as const;

  test.each(broken)(
    '%s are no call: the text is kept, and the next request is valid',
    async (_name, raw, reason, end) => {
      const cut = reason === 'cut';
      const limits = cut ? { max_tokens: raw.length } : {};
      const expected = { content: raw, tool_call_errors: [{ reason, raw }] };
      server.say(raw, { cut });
      const { message, finish_reason } = await answer({ tools: [add], ...limits });
      expect([message, finish_reason]).toMatchObject([expected, end]);
      expect(message.tool_calls).toBeUndefined();

      server.say(raw, { cut });
      const chunks = (await events({ tools: [add], ...limits })).slice(0, -1).map((event) => JSON.parse(event));
      const deltas = chunks.map(({ choices }) => choices[0].delta);
      expect(deltas.map(({ content = '' }) => content).join('')).toBe(raw);
      expect(deltas.some((delta) => 'tool_calls' in delta)).toBe(false);
      expect(deltas.flatMap(({ tool_call_errors = [] }) => tool_call_errors)).toEqual(expected.tool_call_errors);

      // What an agent says of it is a turn like any other.
      server.say('sorry');
      const complaint = { role: 'tool', tool_call_id: 'none', content: `no call: ${reason}` };
      const next = await answer({ tools: [add], messages: [...messages, message, complaint] });
      expect(next.message.content).toBe('sorry');
      expect(server.lastPrompt()).toContain(`<assistant>${raw}</assistant><tool>no call: ${reason}</tool>`);
    },
  );

  test('calls of an earlier turn whose arguments were cut are taken as they are', async () => {
    server.say('ok');
    const call = { id: 'call_1', type: 'function', function: { name: 'add', arguments: '{"a": 1' } };
    const turn = { role: 'assistant', content: null, tool_calls: [call] };
    await answer({
      tools: [add],
      messages: [...messages, turn, { role: 'tool', tool_call_id: 'call_1', content: 'no' }],
    });
    expect(server.lastPrompt()).toContain('"arguments": {"a": 1}</tool_call>');
  });
});

describe('F5', () => {
  test('arguments as text, object, null or nothing are written in one way', async () => {
    const promptWith = async (args: unknown) => {
      server.say('ok');
      const call = { id: 'a', type: 'function', function: { name: 'add', arguments: args } };
      await answer({ messages: [...messages, { role: 'assistant', tool_calls: [call] }] });
      return server.lastPrompt();
    };
    const none = await promptWith({});
    expect(none).toContain('"arguments": {}}');
    for (const args of [null, '', '{}', 'null']) expect(await promptWith(args)).toBe(none);
    const some = await promptWith({ a: [1, 'x'] });
    expect(some).toContain('"arguments": {"a": [1, "x"]}}');
    expect(await promptWith('{"a":[1,"x"]}')).toBe(some);
  });
});

describe('F7', () => {
  test('the usage chunk comes on request alone, without choices', async () => {
    const usages = async (body: object) => {
      server.say('ok');
      const chunks = (await events(body)).slice(0, -1).map((event) => JSON.parse(event));
      return chunks.filter(({ usage }) => usage !== undefined);
    };
    expect(await usages({})).toEqual([]);
    expect(await usages({ stream_options: { include_usage: false } })).toEqual([]);
    expect(await usages({ stream_options: { include_usage: true } })).toMatchObject([
      { choices: [], usage: { prompt_tokens: 29, completion_tokens: 3, total_tokens: 32 } },
    ]);
  });

  test.each([true, false])(
    'a client that goes away (stream: %s) ends the generation, and pays for what was drawn',
    async (stream) => {
      const before = await sampled();
      const paused = server.engine.pause();
      const aborts = server.engine.aborted.length;
      server.say('abcdefghij', { pauseAt: 4 });
      const gone = new AbortController();
      const response = post({ stream }, gone.signal);
      response.catch(() => {}); // looked at below
      await paused;
      if (stream) await (await response).body!.getReader().read();
      gone.abort();
      await expect.poll(() => server.engine.aborted.length).toBe(aborts + 1);
      await expect.poll(async () => (await sampled()).sampleTokens - before.sampleTokens).toBe(4);
      expect((await sampled()).prefillTokens - before.prefillTokens).toBe(29);
    },
  );

  async function sampled(): Promise<{ readonly sampleTokens: number; readonly prefillTokens: number }> {
    const response = await fetch(`${server.url}/v1/usage?by=model`);
    const { usage } = (await response.json()) as { usage: { sampleTokens: number; prefillTokens: number }[] }; // as the route has it
    return usage[0] ?? { sampleTokens: 0, prefillTokens: 0 };
  }

  test('what goes wrong within a stream is its last event, of the API’s shape, and the client throws it', async () => {
    const fails = new LoopwrightError({ code: 'out_of_memory', message: 'no room' });
    const paused = server.engine.pause();
    server.say('abc', { pauseAt: 1, fails });
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any' });
    const stream = await client.chat.completions.create({
      ...{ model, stream: true },
      messages: [{ role: 'user', content: 'Hello' }],
    });
    await paused;
    server.engine.goOn();
    let text = '';
    const reading = (async () => {
      for await (const { choices } of stream) text += choices[0]?.delta.content ?? '';
    })();
    await expect(reading).rejects.toMatchObject({ error: { code: 'no_capacity', message: 'no room' } });
    expect(text).toBe('a');
  });
});

describe('F10', () => {
  const kinds = [
    ['limit_exceeded', 429, 'rate_limit_exceeded', true, '3'],
    ['quota_exceeded', 429, 'insufficient_quota', false, undefined],
    ['out_of_memory', 507, 'no_capacity', false, undefined],
  ] as const;

  test.each(kinds)(
    '%s has a code of its own, and Retry-After only where waiting helps',
    async (code, status, spelled, again, after) => {
      const details = code === 'limit_exceeded' ? { retryAfterMs: 2500 } : {};
      const encoded = encodeOpenAIError(new LoopwrightError({ code, message: 'too much', details }));
      expect(encoded).toMatchObject({ status, body: { error: { code: spelled, loopwright: { code } } } });
      expect(encoded.headers['retry-after']).toBe(after);
      let calls = 0;
      const answering = async () => {
        calls += 1;
        return new Response(JSON.stringify(encoded.body), {
          status,
          headers: { ...encoded.headers, 'retry-after-ms': '1' },
        });
      };
      const client = new OpenAI({ baseURL: 'http://localhost/v1', apiKey: 'any', maxRetries: 1, fetch: answering });
      await expect(client.models.list()).rejects.toMatchObject({ status, code: spelled });
      expect(calls).toBe(again ? 2 : 1);
    },
  );
});

describe('F11', () => {
  test('markup and terminal codes are text, unchanged, in JSON and in events', async () => {
    const image = '<img src=x onerror="alert(1)">';
    server.say(image);
    const response = await post({});
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: image } }] });
    server.say(image);
    const found = (await events({})).slice(0, -1).map((event) => JSON.parse(event).choices[0].delta.content ?? '');
    expect(found.join('')).toBe(image);
    // The model of these tests has no token of an escape character; JSON writes it so that no terminal acts on it.
    const codes = '\u001b[2J\u001b]0;title\u0007';
    const choice = { content: codes, reasoning: '', toolCalls: [], brokenCalls: [], finishReason: 'stop' } as const;
    const usage = { promptTokens: 1, completionTokens: 1 };
    const body = JSON.stringify(encodeChatCompletion({ id: 'a', model, createdAtMs: 0 }, { choices: [choice], usage }));
    expect(body).not.toContain('\u001b');
    expect(JSON.parse(body)).toMatchObject({ choices: [{ message: { content: codes } }] });
    const refused = await post({ model: '\u001b[2J' });
    expect(await refused.text()).not.toContain('\u001b');
  });
});
