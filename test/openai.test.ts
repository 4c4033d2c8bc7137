/** What `model` names on the OpenAI wire, over HTTP, with the bundled model: sessions, saved versions, base models; what is billed. */
import { join } from 'node:path';
import { startServer } from '@loopwright/server';
import { temporaryDirectory } from '@loopwright/testkit';
import { tinyModel } from '@loopwright/tiny';
import { ServiceClient } from 'loopwright';
import OpenAI, { APIError } from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';

const folder = await temporaryDirectory();
const dataDir = join(folder.path, 'data');
let server = await startServer({ dataDir, models: [tinyModel] });
const client = new ServiceClient({ baseUrl: server.url });
let training: Awaited<ReturnType<typeof client.createLoraTrainingClient>>;
const chat = {
  messages: [{ role: 'user' as const, content: '12+34=' }],
  max_tokens: 8,
  temperature: 0,
  logprobs: true,
};
const openai = () => new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', maxRetries: 0 });

beforeAll(async () => {
  training = await client.createLoraTrainingClient({ baseModel: tinyModel.id, rank: 4, seed: 1, name: 'pupil' });
});
afterAll(async () => {
  await server.close();
  await folder[Symbol.asyncDispose]();
});

/** Log-probs of a greedy answer: they tell weights apart where the text may not. */
async function answerOf(model: string): Promise<number[]> {
  const { choices } = await openai().chat.completions.create({ ...chat, model });
  return choices[0]!.logprobs!.content!.map(({ logprob }) => logprob);
}

/** A big step, so that an answer shows whether it was taken. */
async function learn(): Promise<void> {
  const tokens = (await training.getTokenizer()).encode('12+34=46');
  const datum = {
    modelInput: tokens.slice(0, -1),
    lossFnInputs: { targetTokens: tokens.slice(1), weights: tokens.slice(1).map(() => 1) },
  };
  await training.forwardBackward([datum], 'cross_entropy');
  await training.optimStep({ learningRate: 0.01 });
}

test('the likeliest tokens of a greedy answer begin with the drawn one, whose values agree; at the end of the context too', async () => {
  const { choices } = await openai().chat.completions.create({ ...chat, model: tinyModel.id, top_logprobs: 20 });
  const content = choices[0]!.logprobs!.content!;
  expect(content.length).toBeGreaterThan(0);
  for (const { token, logprob, top_logprobs: top } of content) {
    expect(top[0]).toMatchObject({ token, logprob });
    expect(top.map((likely) => likely.logprob)).toEqual(top.map((likely) => likely.logprob).sort((a, b) => b - a));
    const mass = top.reduce((sum, likely) => sum + Math.exp(likely.logprob), 0);
    expect(mass).toBeLessThan(1 + 1e-4);
  }
  const prompt = Array.from({ length: 1023 }, (_, i) => 3 + (i % 5));
  const last = await openai().completions.create({ model: tinyModel.id, prompt, max_tokens: 1, logprobs: 5, seed: 3 });
  expect(Object.keys(last.choices[0]!.logprobs!.top_logprobs![0]!).length).toBeGreaterThan(4);
});

let version = '';
let ofBase: number[] = [];
let ofVersion: number[] = [];

test('a base model answers without any session', async () => {
  ofBase = await answerOf(tinyModel.id);
  expect(ofBase.length).toBeGreaterThan(0);
  expect(await answerOf('pupil')).toEqual(ofBase); // nothing was saved yet
});

test('a session answers with its latest save, and a version by its id or ARN', async () => {
  await learn();
  const { modelPackageArn } = await training.saveState({ description: 'taught' });
  version = modelPackageArn.split('model-package/')[1]!;
  ofVersion = await answerOf('pupil');
  expect(ofVersion).not.toEqual(ofBase);
  expect(await answerOf(version)).toEqual(ofVersion);
  expect(await answerOf(modelPackageArn)).toEqual(ofVersion);
  const listed = (await openai().models.list()).data.map(({ id }) => id);
  expect(listed).toEqual([tinyModel.id, 'pupil', version]);
});

test('sessions that the server makes for that are in no list, and their answers are billed', async () => {
  const sessions = await client.listSessions();
  expect(sessions.map(({ name }) => name)).toEqual(['pupil']);
  const answer = await fetch(`${server.url}/v1/usage?by=session`);
  const { usage } = (await answer.json()) as { usage: { session: { name: string }; sampleTokens: number }[] }; // as the route has it
  const own = usage.filter(({ session }) => session.name.startsWith('~loopwright-tiny-'));
  expect(own).toHaveLength(1);
  expect(own[0]!.sampleTokens).toBeGreaterThan(ofBase.length);
});

test('a session that has ended says so, and its version still answers; after a new start too', async () => {
  await client.stopSession('pupil');
  await expect.poll(async () => (await client.listSessions())[0]!.status).toBe('Stopped');
  const refused = await answerOf('pupil').catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(APIError);
  expect(refused).toMatchObject({ status: 409, code: 'session_not_active', param: 'model' });
  expect(await answerOf(version)).toEqual(ofVersion);
  await client.close();
  await server.close();
  server = await startServer({ dataDir, models: [tinyModel] });
  expect(await answerOf(version)).toEqual(ofVersion);
  expect(await answerOf(tinyModel.id)).toEqual(ofBase);
});

test('a base model that nobody asks for is let go, and answers as before when it is asked for again', async () => {
  const dataDir = join(folder.path, 'idle');
  await using idle = await startServer({ dataDir, models: [tinyModel], swapAfterMs: 0, sweepMs: 1e9 });
  const engines = async () => {
    const health = (await (await fetch(`${idle.url}/health`)).json()) as { engines: { state: string }[] }; // as the route has it
    return health.engines.map(({ state }) => state);
  };
  const answer = async () => {
    const openai = new OpenAI({ baseURL: `${idle.url}/v1`, apiKey: 'any', maxRetries: 0 });
    const { choices } = await openai.chat.completions.create({ ...chat, model: tinyModel.id });
    return choices[0]!.logprobs!.content!.map(({ logprob }) => logprob);
  };
  expect(await answer()).toEqual(ofBase);
  await idle.sweep();
  expect(await engines()).toEqual(['ready']);
  await idle.sweep();
  expect(await engines()).toEqual([]);
  expect(await answer()).toEqual(ofBase);
  expect(await engines()).toEqual(['ready']);
});

test('a wire that is switched off is not there; the list of models keeps its own word', async () => {
  await using other = await startServer({
    dataDir: join(folder.path, 'other'),
    models: [tinyModel],
    wires: ['sagemaker'],
  });
  const post = await fetch(`${other.url}/v1/chat/completions`, { method: 'POST', body: '{}' });
  expect(post.status).toBe(404);
  expect(await (await fetch(`${other.url}/v1/models`)).json()).toMatchObject({ models: [{ id: tinyModel.id }] });
});
