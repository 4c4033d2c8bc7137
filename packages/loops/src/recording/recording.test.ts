import { LoopwrightError } from '@loopwright/protocol';
import { describe, expect, it } from 'vitest';
import { recordedDatums } from './recorded-datums.js';
import { type Fetch, type RecordedTurn, TurnRecorder } from './turn-recorder.js';

const turn = (prompt: number[], tokens: number[]): RecordedTurn => ({
  prompt,
  answer: { tokens, logprobs: tokens.map((id) => -id / 10), stopReason: 'stop' },
});
const json = (body: unknown, status = 200) =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } });
const chat = 'http://localhost/v1/chat/completions';
const whole = {
  prompt_token_ids: [1, 2],
  choices: [{ index: 0, token_ids: [3, 4], token_logprobs: [-0.3, -0.4], finish_reason: 'stop' }],
};

describe('recorded turns', () => {
  it('that go on from each other are one datum, with loss on what was sampled alone', () => {
    const data = recordedDatums({ turns: [turn([1, 2], [3, 4]), turn([1, 2, 3, 4, 5], [6])], advantage: [1, 2] });
    expect(data).toEqual([
      {
        modelInput: [1, 2, 3, 4, 5],
        lossFnInputs: {
          targetTokens: [2, 3, 4, 5, 6],
          weights: [0, 1, 1, 0, 1],
          logprobs: [0, -0.3, -0.4, 0, -0.6],
          advantages: [0, 1, 1, 0, 2],
        },
      },
    ]);
  });

  it('whose prompt was written otherwise begin a datum of their own, and nothing is lost', () => {
    const data = recordedDatums({
      turns: [turn([1, 2], [3, 4]), turn([1, 2, 9], [6]), turn([1, 2, 3, 4, 7], [8])],
      advantage: 1,
    });
    expect(data.map(({ modelInput }) => modelInput)).toEqual([
      [1, 2, 3, 4, 7],
      [1, 2, 9],
    ]);
    const sampled = data.flatMap(({ lossFnInputs }) => Array.from(lossFnInputs.weights as number[]));
    expect(sampled.filter((weight) => weight === 1)).toHaveLength(4);
  });
});

describe('the recorder', () => {
  it('asks for token ids, passes the answer on, and keeps it', async () => {
    const asked: (string | null)[] = [];
    const fetch: Fetch = async (_input, init) => {
      asked.push(new Headers(init?.headers).get('x-loopwright-token-ids'));
      return json(whole);
    };
    const recorder = new TurnRecorder({ fetch });
    const response = await recorder.fetch(chat, { method: 'POST', headers: { accept: 'application/json' } });
    expect(await response.json()).toEqual(whole);
    await recorder.fetch('http://localhost/v1/models');
    expect(asked).toEqual(['true', null]);
    expect(recorder.turns).toEqual([turn([1, 2], [3, 4])]);
  });

  it('reads a stream as it passes, cut anywhere, and counts it only once it is whole', async () => {
    const chunks = [
      { prompt_token_ids: [1, 2], choices: [{ index: 0, delta: {} }] },
      { choices: [{ index: 0, token_ids: [3], token_logprobs: [-0.3] }] },
      { choices: [{ index: 0, token_ids: [4], token_logprobs: [-0.4], finish_reason: 'stop' }] },
      { choices: [], usage: {} },
    ];
    const text = `: at work\n\n${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}`;
    const streamOf = (said: string) =>
      new Response(
        new ReadableStream<Uint8Array>({
          start: (controller) => {
            for (let at = 0; at < said.length; at += 7)
              controller.enqueue(new TextEncoder().encode(said.slice(at, at + 7)));
            controller.close();
          },
        }),
        { headers: { 'content-type': 'text/event-stream' } },
      );
    const answers = [streamOf(text), streamOf(`${text}data: [DONE]\n\n`)];
    const recorder = new TurnRecorder({ fetch: async () => answers.shift()! });
    expect(await (await recorder.fetch(chat)).text()).toBe(text);
    expect(recorder.turns).toEqual([]);
    await (await recorder.fetch(chat)).text();
    expect(recorder.turns).toEqual([turn([1, 2], [3, 4])]);
  });

  it('leaves failures to the client, and refuses an answer without ids', async () => {
    const recorder = new TurnRecorder({ fetch: async () => json({ error: {} }, 429) });
    expect((await recorder.fetch(chat)).status).toBe(429);
    expect(recorder.turns).toEqual([]);
    const other = new TurnRecorder({ fetch: async () => json({ choices: [{ index: 0, message: {} }] }) });
    const error = await other.fetch(chat).catch((thrown: unknown) => thrown);
    expect(LoopwrightError.isInstance(error) && error.code).toBe('invalid_argument');
  });
});
