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
      messages,
      n: 1,
      maxTokens: undefined,
      temperature: 1,
      topP: 1,
      seed: undefined,
      stop: [],
      stream: false,
      includeUsage: false,
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
      max_tokens: 5,
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

  it.each([
    [{ no: 'messages' }, 'body.no'],
    [{}, 'body.messages'],
    [{ messages: [] }, 'body.messages'],
    [{ messages: [{ role: 'user' }] }, 'body.messages[0].content'],
    [{ messages: [{ role: 'robot', content: '' }] }, 'body.messages[0].role'],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] },
      'body.messages[0].content[0].type',
    ],
    [{ messages: [{ role: 'assistant', content: '', tool_calls: [] }] }, 'body.messages[0].tool_calls'],
    [{ messages, n: 0 }, 'body.n'],
    [{ messages, max_tokens: 0 }, 'body.max_tokens'],
    [{ messages, temperature: 2.1 }, 'body.temperature'],
    [{ messages, top_p: Number.NaN }, 'body.top_p'],
    [{ messages, seed: 1.5 }, 'body.seed'],
    [{ messages, stop: [''] }, 'body.stop[0]'],
    [{ messages, stream_options: { other: true } }, 'body.stream_options.other'],
    [{ messages, tools: [{}] }, 'body.tools'],
    [{ messages, response_format: { type: 'json_object' } }, 'body.response_format'],
    [{ messages, logprobs: true }, 'body.logprobs'],
    [{ messages, presence_penalty: 0.5 }, 'body.presence_penalty'],
    ['text', 'body'],
  ])('%j is refused at %s', (body, field) => {
    expect(refusal(body)).toMatchObject({ code: 'invalid_argument', details: { field } });
  });
});
