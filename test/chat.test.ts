/** Chat completions with a session, over HTTP, from the bundled model. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startServer } from '@loopwright/server';
import { temporaryDirectory } from '@loopwright/testkit';
import { tinyModel } from '@loopwright/tiny';
import { ServiceClient } from 'loopwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeTinyModel } from './support/tiny-model.js';

interface Chunk {
  readonly object: string;
  readonly choices: readonly {
    readonly index: number;
    readonly delta: { readonly role?: string; readonly content?: string };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: object;
}

interface Completion {
  readonly model: string;
  readonly choices: readonly { readonly message: { readonly content: string }; readonly finish_reason: string }[];
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number; readonly total_tokens: number };
}

const folder = await temporaryDirectory();
const random = { id: 'random', directory: await makeTinyModel(join(folder.path, 'random')) };
await writeFile(join(random.directory, 'chat_template.jinja'), '{% for m in messages %}{{ m.content }}{% endfor %}');
const server = await startServer({ dataDir: join(folder.path, 'data'), models: [tinyModel, random] });
const client = new ServiceClient({ baseUrl: server.url });
let training: Awaited<ReturnType<typeof client.createLoraTrainingClient>>;
const name = 'chatty';
/** The bundled model says little; of so many answers at temperature 2, some are longer. */
const chat = {
  messages: [{ role: 'user', content: '12+34+56+78+90=' }],
  max_tokens: 24,
  temperature: 2,
  seed: 3,
  n: 12,
};

beforeAll(async () => {
  training = await client.createLoraTrainingClient({ baseModel: tinyModel.id, rank: 2, seed: 1, name });
});
afterAll(async () => {
  await client.close();
  await server.close();
  await folder[Symbol.asyncDispose]();
});

function post(
  body: object,
  {
    route = 'sample',
    headers = {},
    session = name,
    ...rest
  }: Partial<{ route: string; headers: Record<string, string>; session: string; signal: AbortSignal }> = {},
) {
  return fetch(`${server.url}/training-sessions/${session}/${route}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    ...rest,
  });
}

async function completion(body: object, options: Parameters<typeof post>[1] = {}): Promise<Completion> {
  const response = await post(body, options);
  expect(response.status).toBe(200);
  return (await response.json()) as Completion; // as the API has it; what is read of it is expected below
}

async function events(body: object): Promise<string[]> {
  const response = await post(body, { route: 'sample-with-response-stream' });
  expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
  return (await response.text())
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => event.slice(6));
}

test('an answer has its text, why it ended and what it used', async () => {
  const { model, choices, usage } = await completion(chat);
  expect(model).toBe(name);
  expect(choices).toHaveLength(12);
  const tokenizer = await training.getTokenizer();
  const prompt = tokenizer.applyChatTemplate(chat.messages, { addGenerationPrompt: true });
  const sampler = await training.saveWeightsAndGetSamplingClient();
  const { sequences } = await sampler.sample(prompt, { numSamples: 12, maxTokens: 24, temperature: 2, seed: 3 });
  expect(choices.map(({ message }) => message.content)).toEqual(
    sequences.map(({ tokens }) => tokenizer.decode(tokens)),
  );
  expect(choices.map((choice) => choice.finish_reason)).toEqual(sequences.map(({ stopReason }) => stopReason));
  const completionTokens = sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
  expect(usage).toEqual({
    prompt_tokens: prompt.length,
    completion_tokens: completionTokens,
    total_tokens: prompt.length + completionTokens,
  });
});

test('a stream says the same, piece by piece, and ends with what was asked for', async () => {
  const whole = await completion(chat);
  const found = await events({ ...chat, stream: true, stream_options: { include_usage: true } });
  expect(found.at(-1)).toBe('[DONE]');
  const chunks = found.slice(0, -1).map((event) => JSON.parse(event) as Chunk); // as above
  expect(new Set(chunks.map(({ object }) => object))).toEqual(new Set(['chat.completion.chunk']));
  const choices = chunks.flatMap((chunk) => chunk.choices);
  for (const index of whole.choices.keys()) {
    const own = choices.filter((choice) => choice.index === index);
    expect(own[0]!.delta.role).toBe('assistant');
    expect(own.map(({ delta }) => delta.content ?? '').join('')).toBe(whole.choices[index]!.message.content);
    expect(own.map(({ finish_reason }) => finish_reason).filter(Boolean)).toEqual([
      whole.choices[index]!.finish_reason,
    ]);
  }
  expect(choices.length).toBeGreaterThan(3 * 12); // more than a beginning, one text and an end each
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: whole.usage });
});

test('a stop text ends an answer and is no part of it, streamed or not', async () => {
  const free = (await completion(chat)).choices.map(({ message }) => message.content);
  const longest = free.reduce((best, text) => (text.length > best.length ? text : best));
  expect(longest.length).toBeGreaterThan(3);
  const stop = longest.slice(2, 4);
  const expected = free.map((text) => (text.includes(stop) ? text.slice(0, text.indexOf(stop)) : text));
  const { choices } = await completion({ ...chat, stop });
  expect(choices.map(({ message }) => message.content)).toEqual(expected);
  expect(choices[free.indexOf(longest)]!.finish_reason).toBe('stop');
  const texts = free.map(() => '');
  for (const event of (await events({ ...chat, stop })).slice(0, -1))
    for (const { index, delta } of (JSON.parse(event) as Chunk).choices) texts[index] += delta.content ?? ''; // as above
  expect(texts).toEqual(expected);
});

test('a saved version answers where it is named', async () => {
  const { modelPackageArn } = await training.saveState({ description: 'to chat with' });
  const headers = { 'x-amzn-sagemaker-model-package': modelPackageArn };
  expect((await completion({ ...chat, n: 1 }, { headers })).choices).toHaveLength(1);
  const unknown = await post(chat, { headers: { 'x-amzn-sagemaker-model-package': `${modelPackageArn}9` } });
  expect(unknown.status).toBe(404);
});

test('what is wrong is refused before anything is answered', async () => {
  const tools = [{ type: 'function', function: { name: 'add' } }];
  const refused = await post({ ...chat, tools }, { route: 'sample-with-response-stream' });
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({ code: 'invalid_argument', details: { field: 'body.tools' } });
  const long = await post({ messages: [{ role: 'user', content: '1+'.repeat(5000) }] });
  expect([long.status, await long.json()]).toMatchObject([400, { code: 'context_length_exceeded' }]);
  expect((await post(chat, { session: 'nobody' })).status).toBe(404);
  const text = await fetch(`${server.url}/training-sessions/${name}/sample`, { method: 'POST', body: '{' });
  expect(text.status).toBe(400);
});

test('a stream whose reader goes away stops generating', async () => {
  // Its weights are random: it goes on for long.
  await client.createLoraTrainingClient({ baseModel: random.id, rank: 2, seed: 1, name: 'talker' });
  const gone = new AbortController();
  const response = await post(
    { ...chat, n: 128, max_tokens: 400 },
    { route: 'sample-with-response-stream', session: 'talker', signal: gone.signal },
  );
  const { value } = await response.body!.getReader().read(); // a stream has a body
  const [, id] = /chatcmpl-([\w-]+)/.exec(new TextDecoder().decode(value))!;
  gone.abort();
  const path = `/v1/training-sessions/talker/sampling-operations/${id}`;
  const ended = await fetch(server.url + path, { headers: { 'x-loopwright-wait-seconds': '20' } });
  expect(await ended.json()).toMatchObject({ status: 'Failed', loopwright: { error: { code: 'cancelled' } } });
});

test('a session that was stopped answers no more', async () => {
  const other = await client.createLoraTrainingClient({ baseModel: tinyModel.id, rank: 2, seed: 1, name: 'stopped' });
  await client.stopSession('stopped');
  await expect.poll(async () => (await post(chat, { session: 'stopped' })).status).toBe(409);
  await other.close?.();
});
