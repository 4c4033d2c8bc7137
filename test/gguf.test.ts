/** A GGUF file as base model, from the front door to the engine. */
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type GgufExpected, mixedGgufFile, readFixtureJson, rejection, temporaryDirectory } from '@loopwright/testkit';
import { connect, sftDatum } from 'loopwright';
import { expect, test } from 'vitest';
import { runCommand } from './support/command.js';

const expected = readFixtureJson<GgufExpected>('gguf/expected.json');

test('a GGUF file serves as base model as a directory does: its tokens, its tokenizer, and training', async () => {
  await using folder = await temporaryDirectory();
  await using service = await connect({ dataDir: join(folder.path, 'data') });
  const training = await service.createLoraTrainingClient({ baseModel: mixedGgufFile(), rank: 4, seed: 1 });
  const tokenizer = await training.getTokenizer();
  expect(tokenizer.encode('the inner text')).toEqual(expected.tokenizers.smollm![0]!.ids);
  expect(tokenizer.hasChatTemplate).toBe(true);

  // A new adapter changes nothing yet.
  const sampler = await training.saveWeightsAndGetSamplingClient();
  const { sequences } = await sampler.sample([...expected.input_ids], { maxTokens: 16, temperature: 0 });
  expect([...sequences[0]!.tokens]).toEqual(expected.greedy_16);

  const data = [sftDatum({ prompt: tokenizer.encode('the '), completion: tokenizer.encode('inn') })];
  const first = training.forwardBackward(data, 'cross_entropy');
  const update = training.optimStep({ learningRate: 1e-2 });
  const second = training.forward(data, 'cross_entropy');
  await update;
  expect((await second).outputs[0]!.loss).toBeLessThan((await first).outputs[0]!.loss);
});

test('a GGUF file with a tokenizer of another kind says so when its tokenizer is asked for, and runs on token ids', async () => {
  await using folder = await temporaryDirectory();
  const bytes = await readFile(mixedGgufFile());
  bytes.write('bert', bytes.indexOf('gpt2'), 'latin1');
  const file = join(folder.path, 'model.gguf');
  await writeFile(file, bytes);
  await using service = await connect({ dataDir: join(folder.path, 'data') });
  const sampler = await service.createSamplingClient({ baseModel: file });
  expect(await rejection(sampler.getTokenizer())).toMatchObject({
    code: 'unsupported_model',
    message: expect.stringContaining('tokenizer.ggml.model: expected gpt2 (byte-level BPE), got "bert"'),
  });
  const { sequences } = await sampler.sample([...expected.input_ids], { maxTokens: 4, temperature: 0 });
  expect([...sequences[0]!.tokens]).toEqual(expected.greedy_16.slice(0, 4));
});

test('GGUF files in the model folders are listed by their names', async () => {
  await using folder = await temporaryDirectory();
  await mkdir(join(folder.path, 'owner'));
  await copyFile(mixedGgufFile(), join(folder.path, 'owner', 'small.gguf'));
  await writeFile(join(folder.path, 'notes.txt'), '');
  const { events } = await runCommand(['models', '--json'], {
    home: join(folder.path, 'home'),
    env: { LOOPWRIGHT_MODELS: folder.path },
  });
  expect(events).toContainEqual(
    expect.objectContaining({ type: 'model', id: 'owner/small', architecture: 'llama', contextLength: 512 }),
  );
});
