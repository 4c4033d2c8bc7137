import { LoopwrightError } from '@loopwright/protocol';
import { describe, expect, it } from 'vitest';
import { decodeChatRequest } from './chat-request.js';

const messages = [{ role: 'user', content: 'Hello' }];

function refusal(body: unknown): LoopwrightError {
  try {
    decodeChatRequest(body);
  } catch (error) {
    if (LoopwrightError.isInstance(error)) return error;
  }
  throw new Error('it was not refused');
}

describe('a chat request', () => {
  it('has the defaults of the API', () => {
    expect(decodeChatRequest({ messages, model: 'any' })).toEqual({
      model: 'any',
      messages,
      n: 1,
      maxTokens: undefined,
      temperature: 1,
      topP: 1,
      topK: -1,
      seed: undefined,
      stop: [],
      stream: false,
      includeUsage: false,
      logprobs: false,
      topLogprobs: 0,
      tokenIds: false,
      tools: [],
      toolChoice: { type: 'none' },
      parallelToolCalls: true,
      templateVariables: {},
      reasoningEffort: undefined,
      ignored: [],
    });
  });

  it('takes null for absent, today’s name of the length, one stop text or several, and parts of text', () => {
    const parts = [
      { type: 'text', text: 'Hel' },
      { type: 'text', text: 'lo' },
    ];
    const given = {
      messages: [
        { role: 'developer', content: 'Be brief' },
        { role: 'user', content: parts, name: 'me' },
      ],
      max_completion_tokens: 7,
      stop: 'x',
      seed: null,
      logit_bias: {},
      stream: true,
      stream_options: { include_usage: true },
    };
    expect(decodeChatRequest(given)).toMatchObject({
      messages: [
        { role: 'system', content: 'Be brief' },
        { role: 'user', content: 'Hello', name: 'me' },
      ],
      maxTokens: 7,
      stop: ['x'],
      seed: undefined,
      stream: true,
      includeUsage: true,
    });
    expect(decodeChatRequest({ messages, stop: ['a', 'b'] }).stop).toEqual(['a', 'b']);
  });

  it('takes one limit under either name, or both where they agree', () => {
    const limits = (given: object) => decodeChatRequest({ messages, ...given }).maxTokens;
    expect(limits({ max_tokens: 5 })).toBe(5);
    expect(limits({ max_tokens: 7, max_completion_tokens: 7 })).toBe(7);
    expect(refusal({ messages, max_tokens: 5, max_completion_tokens: 7 }).message).toMatch(/7 beside 5/);
  });

  it('leaves unknown fields out, and lists them', () => {
    const given = { messages, 'new"idea': 1, top_secret: true, store: false, constructor: 1 };
    expect(decodeChatRequest(given).ignored).toEqual(['new?idea', 'top_secret', 'constructor']);
  });

  it('gives arguments of earlier calls one form, however they come; text that is none is kept', () => {
    const argumentsOf = (value: unknown) => {
      const call = { id: 'a', type: 'function', function: { name: 'f', arguments: value } };
      const [message] = decodeChatRequest({
        messages: [{ role: 'assistant', content: null, tool_calls: [call] }],
      }).messages;
      return message;
    };
    const expected = (value: unknown) => ({
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: value } }],
    });
    for (const none of [null, undefined, '', ' ', 'null', '{}', {}]) expect(argumentsOf(none)).toEqual(expected({}));
    for (const some of ['{"a":1}', { a: 1 }]) expect(argumentsOf(some)).toEqual(expected({ a: 1 }));
    for (const text of ['{"a":', '[1]', '{"a":1}{"a":1}']) expect(argumentsOf(text)).toEqual(expected(text));
  });

  it('has tools as templates take them, none where the choice is none', () => {
    const tool = { type: 'function', function: { name: 'add', parameters: { type: 'object' }, strict: false } };
    const asked = { messages, tools: [tool] };
    const tools = [{ type: 'function', function: { name: 'add', parameters: { type: 'object' } } }];
    expect(decodeChatRequest(asked)).toMatchObject({ tools, toolChoice: { type: 'auto' } });
    expect(decodeChatRequest({ ...asked, tool_choice: 'none' })).toMatchObject({ tools: [] });
    const named = { type: 'function', function: { name: 'add' } };
    expect(decodeChatRequest({ ...asked, tool_choice: named }).toolChoice).toEqual({ type: 'named', name: 'add' });
    expect(decodeChatRequest({ ...asked, tool_choice: 'required' }).toolChoice).toEqual({ type: 'required' });
  });

  it.each([
    [{ no: 'messages' }, 'body.messages'],
    [{}, 'body.messages'],
    [{ messages: [] }, 'body.messages'],
    [{ messages: [{ role: 'user' }] }, 'body.messages[0].content'],
    [{ messages: [{ role: 'robot', content: '' }] }, 'body.messages[0].role'],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] },
      'body.messages[0].content[0].type',
    ],
    [{ messages: [{ role: 'assistant', tool_calls: [] }] }, 'body.messages[0].content'],
    [{ messages: [{ role: 'tool', content: '' }] }, 'body.messages[0].tool_call_id'],
    [
      { messages: [{ role: 'assistant', tool_calls: [{ id: 'a', function: {} }] }] },
      'body.messages[0].tool_calls[0].function.name',
    ],
    [{ messages, n: 0 }, 'body.n'],
    [{ messages, max_tokens: 0 }, 'body.max_tokens'],
    [{ messages, temperature: 2.1 }, 'body.temperature'],
    [{ messages, top_p: Number.NaN }, 'body.top_p'],
    [{ messages, seed: 1.5 }, 'body.seed'],
    [{ messages, stop: [''] }, 'body.stop[0]'],
    [{ messages, stream_options: { other: true } }, 'body.stream_options.other'],
    [{ messages, tools: [{}] }, 'body.tools[0].type'],
    [{ messages, tools: [{ type: 'function', function: { name: 'a b' } }] }, 'body.tools[0].function.name'],
    [
      { messages, tools: [{ type: 'function', function: { name: 'a', strict: true } }] },
      'body.tools[0].function.strict',
    ],
    [{ messages, tool_choice: 'auto' }, 'body.tool_choice'],
    [
      {
        messages,
        tools: [{ type: 'function', function: { name: 'a' } }],
        tool_choice: { type: 'function', function: { name: 'b' } },
      },
      'body.tool_choice.function.name',
    ],
    [{ messages, chat_template_kwargs: { messages: [] } }, 'body.chat_template_kwargs.messages'],
    [{ messages, min_p: 0.1 }, 'body.min_p'],
    [{ messages, functions: [{}] }, 'body.functions'],
    [{ messages, response_format: { type: 'json_schema', json_schema: {} } }, 'body.response_format'],
    [{ messages, response_format: { type: 'json_object' } }, 'body.response_format'],
    [{ messages, top_logprobs: 2 }, 'body.top_logprobs'],
    [{ messages, logprobs: true, top_logprobs: 21 }, 'body.top_logprobs'],
    [{ messages, presence_penalty: 0.5 }, 'body.presence_penalty'],
    ['text', 'body'],
  ])('%j is refused at %s', (body, field) => {
    expect(refusal(body)).toMatchObject({ code: 'invalid_argument', details: { field } });
  });
});
