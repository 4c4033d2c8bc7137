/** The Vercel AI SDK, by its provider for compatible servers, unmodified: text, streams, tools in a loop, reasoning, errors. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ScriptedServer, startScriptedServer } from './scripted-server.js';

let server: ScriptedServer;
let models: ReturnType<typeof createOpenAICompatible>;
const prompt = 'Hello';
const given: unknown[] = [];
const tools = {
  add: tool({
    description: 'Adds.',
    inputSchema: jsonSchema<{ a: number }>({ type: 'object', properties: { a: { type: 'number' } } }),
    execute: async (input) => {
      given.push(input);
      return { sum: input.a + 1 };
    },
  }),
};

beforeAll(async () => {
  server = await startScriptedServer({ apiKey: 'a-key-of-tests' });
  models = createOpenAICompatible({
    name: 'loopwright',
    baseURL: `${server.url}/v1`,
    apiKey: 'a-key-of-tests',
    includeUsage: true,
  });
});
afterAll(async () => {
  await server.close();
});

test('a text, with its reasoning and what it used', async () => {
  server.say('<think>Hm.</think>Hi there');
  const result = await generateText({ model: models('scripted'), prompt });
  expect(result).toMatchObject({ text: 'Hi there', reasoningText: 'Hm.', finishReason: 'stop' });
  expect(result.usage).toMatchObject({ inputTokens: 29, outputTokens: 27 });
});

test('a stream of text, which says what it used', async () => {
  server.say('Hi there');
  const result = streamText({ model: models('scripted'), prompt });
  let text = '';
  for await (const piece of result.textStream) text += piece;
  expect(text).toBe('Hi there');
  expect(await result.usage).toMatchObject({ inputTokens: 29, outputTokens: 9 });
});

test.each(['whole', 'streamed'])('a loop with a tool, %s', async (form) => {
  given.length = 0;
  server.say('<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>');
  server.say('It is 2');
  const options = { model: models('scripted'), prompt, tools, stopWhen: stepCountIs(3) };
  const text = form === 'whole' ? (await generateText(options)).text : await streamText(options).text;
  expect(text).toBe('It is 2');
  expect(given).toEqual([{ a: 1 }]);
  expect(server.lastPrompt()).toContain('<tool>{"sum":2}</tool>');
});

test('a call that is cut is never executed', async () => {
  given.length = 0;
  const cut = '<tool_call>{"name": "add", "arguments": {"a": 1}}';
  for (const form of ['whole', 'streamed']) {
    server.say(cut, { cut: true });
    const options = { model: models('scripted'), prompt, tools, stopWhen: stepCountIs(3), maxOutputTokens: cut.length };
    const result = form === 'whole' ? await generateText(options) : streamText(options);
    expect(await result.toolCalls).toEqual([]);
    expect(await result.finishReason).toBe('length');
  }
  expect(given).toEqual([]);
});

test('a refusal says what it was', async () => {
  const refused = generateText({ model: models('nobody'), prompt, maxRetries: 0 });
  const error = await refused.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(APICallError.isInstance(error)).toBe(true);
  expect(error).toMatchObject({ statusCode: 404, message: expect.stringContaining('GET /v1/models') });
});
