/** Contexts that are shorter than what sequences are padded to, or than the rows that datums of one prompt share. */
import { cp, readFile, writeFile } from 'node:fs/promises';
import { type Datum, floatTensor, idTensor } from '@loopwright/protocol';
import { expectClose, temporaryDirectory, tinyModelDirectory, tolerances } from '@loopwright/testkit';
import { expect, it } from 'vitest';
import { base, crossEntropy, prompt, sampleRequest, tinyEngine } from './testing/tiny-engine.js';

const contextLength = 20;

/** Answers of 8 tokens to one prompt of 12: together five times the context. */
const answers = Array.from({ length: 12 }, (_, seed): Datum => {
  const ids = Int32Array.from([...prompt(12), ...prompt(8, seed + 1)]);
  const weights = Array.from({ length: ids.length - 1 }, (_, i) => (i < 11 ? 0 : 1));
  return {
    modelInput: ids.slice(0, -1),
    targetTokens: idTensor(ids.slice(1)),
    weights: floatTensor(Float32Array.from(weights)),
  };
});

it('are scored, sampled from and trained to their end, as a model of a longer context is', async () => {
  await using temporary = await temporaryDirectory();
  const directory = `${temporary.path}/model`;
  await cp(tinyModelDirectory('llama-tied'), directory, { recursive: true });
  const config = JSON.parse(await readFile(`${directory}/config.json`, 'utf8')) as object; // true: it is a config
  await writeFile(`${directory}/config.json`, JSON.stringify({ ...config, max_position_embeddings: contextLength }));
  const [short, long] = await Promise.all(
    [directory, undefined].map(async (path) => {
      await using test = await tinyEngine('llama-tied', path === undefined ? {} : { directory: path });
      const { engine } = test;
      const { sequences } = await engine.sample(
        sampleRequest(prompt(15), { maxTokens: contextLength - 15, temperature: 0 }),
      );
      const { logprobs } = await engine.computeLogprobs({ prompt: prompt(contextLength), weights: base });
      const training = { type: 'lora', rank: 4, alpha: 8, targetModules: ['q_proj', 'v_proj'] } as const;
      await engine.createSession({ name: 's', baseModel: 'x', seed: 1, training });
      const pass = await engine.pass('s', { type: 'forward-backward', data: answers, loss: crossEntropy });
      return { contextLength: engine.model.contextLength, tokens: sequences[0]!.tokens, logprobs, pass };
    }),
  );
  expect(short!.contextLength).toBe(contextLength);
  expect(short!.tokens).toEqual(long!.tokens);
  expect(short!.tokens).toHaveLength(contextLength - 15);
  expectClose(short!.logprobs.subarray(1), long!.logprobs.subarray(1), tolerances.tinyLogprobs);
  for (const [i, { logprobs }] of short!.pass.outputs.entries())
    expectClose(logprobs, long!.pass.outputs[i]!.logprobs, tolerances.tinyLogprobs);
});
