/** The agent of the recipe, which knows nothing of training, against a model that is told what to say: its turns are what was sampled. */
import { recordedDatums, recordedSequences, TurnRecorder } from 'loopwright';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agent } from '../recipes/openai-agent/agent.js';
import { type ScriptedServer, startScriptedServer } from './conformance/openai/scripted-server.js';

let server: ScriptedServer;
const question = 'What is 1 plus 2?';
const call = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>';

beforeAll(async () => {
  server = await startScriptedServer({ contextLength: 1024 });
});
afterAll(async () => {
  await server.close();
});

async function runAgent(...said: readonly string[]) {
  for (const text of said) server.say(text);
  const recorder = new TurnRecorder();
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any', fetch: recorder.fetch });
  const from = server.engine.requests.length;
  const answer = await agent(client, { model: server.model, question });
  return { answer, turns: recorder.turns, requests: server.engine.requests.slice(from) };
}

test('a run with a tool is recorded id by id, and trained as it was sampled', async () => {
  const { answer, turns, requests } = await runAgent(call, '3');
  expect(answer).toBe('3');
  expect(requests).toHaveLength(2);
  expect(turns.map(({ prompt }) => prompt)).toEqual(requests.map(({ prompt }) => Array.from(prompt)));
  expect(turns.map(({ answer: { tokens } }) => tokens.length)).toEqual([call.length + 1, 2]); // each with its end
  const data = recordedDatums({ turns, advantage: [1, 2] });
  const weighted = data.flatMap(({ lossFnInputs: { weights, logprobs, advantages } }) =>
    Array.from(weights as number[]).flatMap((weight, i) =>
      weight === 0 ? [] : [[(logprobs as number[])[i]!, (advantages as number[])[i]!]],
    ),
  );
  expect(weighted).toEqual([...Array(call.length + 1).fill([-0.5, 1]), [-0.5, 2], [-0.5, 2]]);
});

test('what was no call is not run: the agent says so, and the model tries again', async () => {
  const { answer, turns } = await runAgent('<tool_call>{"name": "add"</tool_call>', '3');
  expect(answer).toBe('3');
  expect(server.lastPrompt()).toContain('<user>That was no call of a tool: not-json.</user>');
  expect(recordedSequences(turns).flat()).toHaveLength(2);
});
