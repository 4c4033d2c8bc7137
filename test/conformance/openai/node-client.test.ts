/** The published OpenAI client for Node against a server, unmodified: what it sends is taken, and what it reads is there. */
import OpenAI, { APIError, BadRequestError, NotFoundError } from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type ScriptedServer, startScriptedServer } from './scripted-server.js';

let server: ScriptedServer;
let client: OpenAI;
const messages = [{ role: 'user' as const, content: 'Hello' }];
const add = {
  type: 'function' as const,
  function: {
    name: 'add',
    description: 'Adds.',
    parameters: { type: 'object', properties: { a: { type: 'number' } } },
  },
};
const called = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>';

beforeAll(async () => {
  server = await startScriptedServer({ apiKey: 'a-key-of-tests' });
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'a-key-of-tests' });
});
afterAll(async () => {
  await server.close();
});
let model = '';
beforeEach(() => {
  model = server.model;
});

/** What a promise is refused with. */
async function refusalOf(promise: PromiseLike<unknown>): Promise<APIError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof APIError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

describe('models', () => {
  test('are listed, and got by their id', async () => {
    const ids: string[] = [];
    for await (const { id, object } of client.models.list()) {
      ids.push(id);
      expect(object).toBe('model');
    }
    expect(ids).toEqual(['scripted']);
    expect(await client.models.retrieve('scripted')).toMatchObject({ id: 'scripted', owned_by: 'loopwright' });
    expect(await refusalOf(client.models.retrieve('no/such'))).toBeInstanceOf(NotFoundError);
  });
});

describe('a chat', () => {
  test('is answered whole', async () => {
    server.say('Hi there');
    const answer = await client.chat.completions.create({ model, messages });
    expect(answer).toMatchObject({
      object: 'chat.completion',
      model: 'scripted',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hi there' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: '<user>Hello</user><assistant>'.length, completion_tokens: 9, total_tokens: 38 },
    });
    expect(server.lastPrompt()).toBe('<user>Hello</user><assistant>');
  });

  test('is streamed, with the usage where it is asked for', async () => {
    server.say('Hi there');
    const stream = await client.chat.completions.create({
      ...{ model, messages, stream: true },
      stream_options: { include_usage: true },
    });
    let text = '';
    const ends: unknown[] = [];
    const usages: unknown[] = [];
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      if (chunk.choices[0]?.finish_reason) ends.push(chunk.choices[0].finish_reason);
      if (chunk.usage) usages.push([chunk.choices, chunk.usage.completion_tokens]);
    }
    expect([text, ends, usages]).toEqual(['Hi there', ['stop'], [[[], 9]]]);
  });

  test('has log-probs of what it shows', async () => {
    server.say('Hi');
    const { choices } = await client.chat.completions.create({ model, messages, logprobs: true });
    const expected = [
      { token: 'H', bytes: [72], logprob: -0.5, top_logprobs: [] },
      { token: 'i', bytes: [105], logprob: -0.5, top_logprobs: [] },
    ];
    expect(choices[0]!.logprobs!.content).toEqual(expected);
    server.say('Hi');
    const stream = client.chat.completions.stream({ model, messages, logprobs: true });
    expect((await stream.finalChatCompletion()).choices[0]!.logprobs!.content).toEqual(expected);
  });

  test('has the likeliest tokens in each place, as many as were asked for, streamed too', async () => {
    server.say('Hi');
    const asked = { model, messages, logprobs: true, top_logprobs: 2 };
    const { choices } = await client.chat.completions.create(asked);
    const likely = (token: string, logprob: number) => ({ token, bytes: [token.charCodeAt(0)], logprob });
    const expected = [
      { ...likely('H', -0.5), top_logprobs: [likely('I', -0.25), likely('H', -0.5)] },
      { ...likely('i', -0.5), top_logprobs: [likely('j', -0.25), likely('i', -0.5)] },
    ];
    expect(choices[0]!.logprobs!.content).toEqual(expected);
    server.say('Hi');
    server.say('Ho');
    const stream = client.chat.completions.stream({ ...asked, n: 2 });
    const streamed = (await stream.finalChatCompletion()).choices;
    expect(streamed.map(({ message }) => message.content)).toEqual(['Hi', 'Ho']);
    expect(streamed[0]!.logprobs!.content).toEqual(expected);
    expect(streamed[1]!.logprobs!.content!.map(({ token }) => token)).toEqual(['H', 'o']);
    server.say('Hi');
    const most = await client.chat.completions.create({ ...asked, top_logprobs: 20 });
    expect(most.choices[0]!.logprobs!.content![0]!.top_logprobs).toHaveLength(20);
    for (const refused of [{ top_logprobs: 21 }, { logprobs: false }, { logprobs: null }]) {
      expect(await refusalOf(client.chat.completions.create({ ...asked, ...refused }))).toMatchObject({
        status: 400,
        param: 'top_logprobs',
      });
    }
  });

  test('of several answers has each by its index', async () => {
    for (const text of ['one', 'two', 'three']) server.say(text);
    const { choices } = await client.chat.completions.create({ model, messages, n: 3 });
    expect(choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, 'one'],
      [1, 'two'],
      [2, 'three'],
    ]);
  });

  test('has the reasoning apart', async () => {
    server.say('<think>Hm.</think>Yes');
    const { choices } = await client.chat.completions.create({ model, messages });
    expect(choices[0]!.message).toMatchObject({ content: 'Yes', reasoning_content: 'Hm.' });
  });
});

describe('tools', () => {
  test('are told to the model, and called', async () => {
    server.say(`I add.${called}`);
    const { choices } = await client.chat.completions.create({ model, messages, tools: [add] });
    const [choice] = choices;
    expect(choice).toMatchObject({
      finish_reason: 'tool_calls',
      message: {
        content: 'I add.',
        tool_calls: [{ type: 'function', function: { name: 'add', arguments: '{"a": 1}' } }],
      },
    });
    expect(server.lastPrompt()).toContain('"description": "Adds."');

    const [call] = choice!.message.tool_calls!;
    server.say('2');
    const result = { role: 'tool' as const, tool_call_id: call!.id, content: '2' };
    const next = await client.chat.completions.create({
      ...{ model, tools: [add] },
      messages: [...messages, choice!.message, result],
    });
    expect(next.choices[0]!.message.content).toBe('2');
    expect(server.lastPrompt()).toMatch(
      /<assistant>I add\.<tool_call>\{"name": "add", "arguments": \{"a": 1\}\}<\/tool_call><\/assistant><tool>2<\/tool><assistant>$/,
    );
  });

  test('are called in a stream, each call whole', async () => {
    server.say(`${called}<tool_call>{"name": "add"}</tool_call>`);
    const stream = client.chat.completions.stream({ model, messages, tools: [add] });
    const { choices } = await stream.finalChatCompletion();
    expect(choices[0]!.finish_reason).toBe('tool_calls');
    const calls = choices[0]!.message.tool_calls!;
    expect(calls.map((call) => call.type === 'function' && call.function.arguments)).toEqual(['{"a": 1}', '{}']);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
  });

  test('run by the client’s own loop', async () => {
    server.say(called);
    server.say('It is 2');
    const given: unknown[] = [];
    const runner = client.chat.completions.runTools({
      ...{ model, messages },
      tools: [
        {
          type: 'function',
          function: {
            ...add.function,
            parse: (text: string): unknown => JSON.parse(text),
            function: (args: unknown) => {
              given.push(args);
              return '2';
            },
          },
        },
      ],
    });
    expect(await runner.finalContent()).toBe('It is 2');
    expect(given).toEqual([{ a: 1 }]);
  });

  test('may be demanded, by name or any, and be left out', async () => {
    server.say(' {"a": 3}}</tool_call>');
    const named = await client.chat.completions.create({
      ...{ model, messages, tools: [add] },
      tool_choice: { type: 'function', function: { name: 'add' } },
    });
    expect(server.lastPrompt()).toMatch(/<assistant><tool_call>(<\|unk\|>)?\{"name": "add", "arguments":$/);
    expect(named.choices[0]!.message.tool_calls).toMatchObject([{ function: { name: 'add', arguments: '{"a": 3}' } }]);
    server.say('add", "arguments": {}}</tool_call>');
    const required = await client.chat.completions.create({ model, messages, tools: [add], tool_choice: 'required' });
    expect(required.choices[0]!.message.tool_calls).toMatchObject([{ function: { name: 'add', arguments: '{}' } }]);
    server.say(called);
    const none = await client.chat.completions.create({ model, messages, tools: [add], tool_choice: 'none' });
    expect(none.choices[0]!.message).toMatchObject({ content: called });
    expect(server.lastPrompt()).not.toContain('Adds.');
  });

  test('one at a time where parallel calls are off: decoding ends behind the first', async () => {
    server.say(called);
    await client.chat.completions.create({ model, messages, tools: [add], parallel_tool_calls: false });
    expect(server.engine.requests.at(-1)!.params.stop).toEqual(['</tool_call>']);
  });
});

describe('a completion', () => {
  test('goes on with a text, or with ids', async () => {
    server.say('world');
    const answer = await client.completions.create({ model, prompt: 'Hello, ', logprobs: 0 });
    expect(answer).toMatchObject({
      object: 'text_completion',
      choices: [{ text: 'world', finish_reason: 'stop', logprobs: { tokens: ['w', 'o', 'r', 'l', 'd'] } }],
      usage: { prompt_tokens: 7, completion_tokens: 6 },
    });
    server.say('a');
    server.say('b');
    const two = await client.completions.create({
      ...{ model, max_tokens: 1, echo: true },
      prompt: [
        [40, 41],
        [42, 43],
      ],
    });
    expect(two.choices.map(({ index, text }) => [index, text.length])).toEqual([
      [0, 3],
      [1, 3],
    ]);
  });

  test('has the likeliest tokens in each place, the drawn one always among them', async () => {
    server.say('Hi');
    const one = await client.completions.create({ model, prompt: 'x', logprobs: 1 });
    const first = { tokens: ['H', 'i'], token_logprobs: [-0.5, -0.5], text_offset: [0, 1] };
    expect(one.choices[0]!.logprobs).toEqual({
      ...first,
      top_logprobs: [
        { I: -0.25, H: -0.5 },
        { j: -0.25, i: -0.5 },
      ],
    });
    server.say('Hi');
    const said: string[] = [];
    const told: unknown[] = [];
    for await (const { choices } of await client.completions.create({
      model,
      prompt: 'x',
      stream: true,
      logprobs: 5,
    })) {
      said.push(choices[0]!.text);
      if (choices[0]!.logprobs?.tokens?.length) told.push(choices[0]!.logprobs);
    }
    expect(said.join('')).toBe('Hi');
    expect(told).toMatchObject([{ ...first, top_logprobs: [{ I: -0.25, H: -0.5, J: -1.5 }, {}] }]);
    expect(await refusalOf(client.completions.create({ model, prompt: 'x', logprobs: 6 }))).toMatchObject({
      param: 'logprobs',
    });
  });

  test('is streamed', async () => {
    server.say('world');
    let text = '';
    for await (const { choices } of await client.completions.create({ model, prompt: 'x', stream: true }))
      text += choices[0]?.text ?? '';
    expect(text).toBe('world');
  });
});

describe('errors', () => {
  test('are of the client’s classes, with field, code and what to do', async () => {
    const unknown = await refusalOf(client.chat.completions.create({ model: 'nobody', messages }));
    expect(unknown).toBeInstanceOf(NotFoundError);
    expect(unknown).toMatchObject({
      status: 404,
      code: 'model_not_found',
      param: 'model',
      type: 'invalid_request_error',
    });
    expect(unknown.message).toContain('GET /v1/models');
    const format = await refusalOf(
      client.chat.completions.create({ model, messages, response_format: { type: 'json_object' } }),
    );
    expect(format).toBeInstanceOf(BadRequestError);
    expect(format).toMatchObject({ param: 'response_format' });
    const stranger = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'another-key' });
    expect(await refusalOf(stranger.chat.completions.create({ model, messages }))).toMatchObject({
      status: 401,
      code: 'invalid_api_key',
    });
    const long = [{ role: 'user' as const, content: 'x'.repeat(600) }];
    expect(await refusalOf(client.chat.completions.create({ model, messages: long }))).toMatchObject({
      status: 400,
      code: 'context_length_exceeded',
    });
  });
});
