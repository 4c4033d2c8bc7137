import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expectSameBits, rejection, temporaryDirectory, tinyModelDirectory } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { base, expectSampledAsScored, prompt, sampleRequest, tinyEngine } from '../testing/tiny-engine.js';

describe('a sequence ends', () => {
  it('after an end-of-sequence token or a stop id, which is kept, and at maxTokens', async () => {
    await using test = await tinyEngine('llama-tied');
    const request = sampleRequest(prompt(5), { temperature: 2, maxTokens: 400, numSamples: 12 });
    const free = await test.engine.sample(request);
    const ended = free.sequences.filter(({ stopReason }) => stopReason === 'stop');
    expect(ended.length).toBeGreaterThan(0);
    for (const { tokens } of ended) expect([tokens.indexOf(2), tokens.at(-1)]).toEqual([tokens.length - 1, 2]);
    const { tokens } = free.sequences[0]!;
    const stopTokenIds = [tokens[4]!];
    const stopped = await test.engine.sample(
      sampleRequest(prompt(5), { temperature: 2, maxTokens: 400, stopTokenIds }),
    );
    const end = tokens.indexOf(tokens[4]!) + 1;
    expect([...stopped.sequences[0]!.tokens]).toEqual([...tokens.slice(0, end)]);
    expect(stopped.sequences[0]!.stopReason).toBe('stop');
    const short = await test.engine.sample(sampleRequest(prompt(5), { temperature: 2, maxTokens: 3 }));
    expect([...short.sequences[0]!.tokens]).toEqual([...tokens.slice(0, 3)]);
    expect(short.sequences[0]!.stopReason).toBe('length');
  });

  it('where the context ends', async () => {
    await using test = await tinyEngine('llama-tied');
    for (const length of [511, 500]) {
      const { sequences } = await test.engine.sample(
        sampleRequest(prompt(length), { temperature: 0, maxTokens: 1000 }),
      );
      const { tokens, stopReason } = sequences[0]!;
      if (stopReason === 'length') expect(tokens).toHaveLength(512 - length);
      else expect(tokens.at(-1)).toBe(2);
    }
    await expectSampledAsScored(test.engine, sampleRequest(prompt(505), { maxTokens: 7 }));
    const error = await rejection(test.engine.sample(sampleRequest(prompt(512))));
    expect(error).toMatchObject({ code: 'context_length_exceeded', details: { field: 'prompt', got: '512 tokens' } });
    expect(await rejection(test.engine.computeLogprobs({ prompt: prompt(513), weights: base }))).toMatchObject({
      code: 'context_length_exceeded',
    });
  });

  it('after a stop string, wherever its characters fall, control tokens included', async () => {
    await using temporary = await temporaryDirectory();
    const directory = path.join(temporary.path, 'model');
    await mkdir(directory);
    for (const file of ['config.json', 'model.safetensors'])
      await copyFile(path.join(tinyModelDirectory('llama-tied'), file), path.join(directory, file));
    await writeFile(path.join(directory, 'tokenizer.json'), JSON.stringify(letterTokenizer()));
    await using test = await tinyEngine('llama-tied', { directory });
    const request = sampleRequest(prompt(5), { temperature: 2, maxTokens: 40, seed: 3 });
    const free = (await test.engine.sample(request)).sequences[0]!;
    const texts = [...free.tokens].map(tokenText);
    expect(texts.length).toBeGreaterThan(12);
    // A string that begins in the middle of one token and ends in the middle of another.
    const stop = texts.slice(6, 9).join('').slice(1, -1);
    const joined = (count: number) => texts.slice(0, count).join('');
    const count = texts.findIndex((_, i) => joined(i + 1).includes(stop)) + 1;
    const stopped = await test.engine.sample({ ...request, params: { ...request.params, stop: ['nowhere', stop] } });
    expect([...stopped.sequences[0]!.tokens]).toEqual([...free.tokens.slice(0, count)]);
    expect(stopped.sequences[0]!.stopReason).toBe('stop');
    expectSameBits(stopped.sequences[0]!.logprobs, free.logprobs.slice(0, count));

    const control = await test.engine.sample({
      ...request,
      numSamples: 64,
      params: { ...request.params, stop: ['<|x|>'], maxTokens: 60 },
    });
    const met = control.sequences.filter(({ tokens }) => tokens.includes(7));
    expect(met.length).toBeGreaterThan(0);
    for (const { tokens, stopReason } of met)
      expect([tokens.indexOf(7), stopReason]).toEqual([tokens.length - 1, 'stop']);
  });

  it('and a stop string is refused at once where the model has no tokenizer', async () => {
    await using test = await tinyEngine('llama-tied');
    const error = await rejection(test.engine.sample(sampleRequest(prompt(5), { stop: ['x'] })));
    expect(error).toMatchObject({ code: 'model_invalid' });
  });
});

/** Text of a token of {@link letterTokenizer}: 7 is a control token, the others are of three letters. */
function tokenText(id: number): string {
  if (id === 7) return '<|x|>';
  return [Math.floor(id / 100), Math.floor(id / 10) % 10, id % 10].map((digit) => 'abcdefghij'[digit]).join('');
}

function letterTokenizer(): unknown {
  const vocab = Object.fromEntries(Array.from({ length: 300 }, (_, id) => [tokenText(id), id]));
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: [
      { id: 7, content: '<|x|>', single_word: false, lstrip: false, rstrip: false, normalized: false, special: true },
    ],
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: { type: 'BPE', vocab, merges: [], byte_fallback: false, ignore_merges: true },
  };
}
