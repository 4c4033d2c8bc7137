import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  expectClose,
  type GgufExpected,
  mixedGgufFile,
  readFixtureJson,
  rejection,
  temporaryDirectory,
  tinyModelDirectory,
  tolerances,
} from '@loopwright/testkit';
import { loadTokenizer } from '@loopwright/text';
import { describe, expect, it } from 'vitest';
import { base, sampleRequest, tinyEngine } from '../../local/testing/tiny-engine.js';
import { loadModelTokenizer } from '../model-tokenizer.js';
import { openModel, openModelFiles } from '../open-model.js';
import { bytesOf } from '../source-file.js';
import { dequantize } from './dequantize.js';
import { GgufFile } from './gguf-file.js';
import type { GgufValue } from './header.js';
import { findRopeScaling, ropeFactors } from './rope-factors.js';
import { ggufTokenizer } from './tokenizer.js';

const expected = readFixtureJson<GgufExpected>('gguf/expected.json');

/** The fixture with some bytes replaced, of the same length. */
async function changedFile(directory: string, from: string, to: string): Promise<string> {
  const bytes = readFileSync(mixedGgufFile());
  const at = bytes.indexOf(Buffer.from(from, 'latin1'));
  expect(at).toBeGreaterThan(0);
  expect(to).toHaveLength(from.length);
  bytes.write(to, at, 'latin1');
  const file = path.join(directory, 'model.gguf');
  await writeFile(file, bytes);
  return file;
}

describe('a GGUF file', () => {
  it('has tensors of every type, with the values that ggml gives them', async () => {
    await using model = await openModel(mixedGgufFile());
    expect(new Set(Object.values(expected.tensor_types))).toEqual(
      new Set(['F32', 'F16', 'BF16', 'Q8_0', 'Q4_0', 'Q4_1']),
    );
    for (const { name } of model.specs) {
      const digest = createHash('sha256')
        .update(bytesOf(await model.read(name)))
        .digest('hex');
      expect(digest, `${name}, ${expected.tensor_types[name]}`).toBe(expected.sha256_of_float32[name]);
    }
  });

  it('is read into a given array, which must have the length of the tensor', async () => {
    await using file = await GgufFile.open(mixedGgufFile());
    const into = new Float32Array(64 * 64);
    expect(await file.readFloat32('blk.0.attn_q.weight', { into })).toBe(into);
    expect(await rejection(file.readFloat32('blk.0.attn_k.weight', { into }))).toMatchObject({
      code: 'invalid_argument',
      details: { field: 'into' },
    });
  });

  it('gives the same config as the directory that it was made from', async () => {
    await using model = await openModel(mixedGgufFile());
    await using directory = await openModel(tinyModelDirectory('llama-rope3'));
    expect(model.config).toEqual(directory.config);
  });

  it('gives the log-probs and greedy tokens that its dequantized weights have in the reference', async () => {
    await using test = await tinyEngine('llama-rope3', { directory: mixedGgufFile() });
    const prompt = Int32Array.from(expected.input_ids);
    const { logprobs } = await test.engine.computeLogprobs({ prompt, weights: base });
    expectClose(logprobs.subarray(1), expected.logprobs, tolerances.tinyLogprobs);
    const { sequences } = await test.engine.sample(sampleRequest(prompt, { temperature: 0, maxTokens: 16 }));
    expect([...sequences[0]!.tokens]).toEqual(expected.greedy_16);
  });

  it('cannot be read after it was closed', async () => {
    const file = await GgufFile.open(mixedGgufFile());
    await file[Symbol.asyncDispose]();
    expect(await rejection(file.readFloat32('output_norm.weight'))).toMatchObject({ code: 'disposed' });
  });

  it.each([
    ['another architecture', 'llama', 'falco', 'unsupported_model', 'general.architecture'],
    ['a missing tensor', 'blk.1.ffn_up.weight', 'blk.1.ffn_ap.weight', 'model_invalid', 'blk.1.ffn_up.weight'],
    ['missing metadata', 'llama.block_count', 'llama.blocc_count', 'model_invalid', 'llama.block_count'],
    ['factors of RoPE that are none', 'rope_freqs.weight', 'rope_frexs.weight', 'model_invalid', 'rope_frexs.weight'],
  ])('with %s is refused by name', async (_, from, to, code, field) => {
    await using directory = await temporaryDirectory();
    const error = await rejection(openModel(await changedFile(directory.path, from, to)));
    expect(error).toMatchObject({ code, details: { field: expect.stringContaining(field) } });
  });

  it('with values that are not finite is refused when they are read, with tensor and position', async () => {
    await using directory = await temporaryDirectory();
    const bytes = readFileSync(mixedGgufFile());
    await using whole = await GgufFile.open(mixedGgufFile());
    bytes.writeFloatLE(Number.NaN, whole.info('blk.1.attn_output.weight').offset + 4 * 7);
    const file = path.join(directory.path, 'nan.gguf');
    await writeFile(file, bytes);
    await using model = await openModel(file);
    expect(await rejection(model.read('model.layers.1.self_attn.o_proj.weight'))).toMatchObject({
      code: 'model_invalid',
      message: expect.stringContaining('blk.1.attn_output.weight: expected finite values, got NaN at position 7'),
    });
  });
});

describe('blocks of Q6_K', () => {
  it('have the values that ggml gives them', () => {
    const { blocks_hex, values } = expected.q6_k;
    const target = new Float32Array(values.length);
    dequantize('Q6_K', Buffer.from(blocks_hex, 'hex'), target);
    expect([...target]).toEqual(values);
  });
});

describe('the tokenizer of a GGUF file', () => {
  async function metadata(changes: Record<string, GgufValue> = {}): Promise<Map<string, GgufValue>> {
    await using file = await GgufFile.open(mixedGgufFile());
    return new Map([...file.metadata, ...Object.entries(changes)]);
  }

  async function tokenizerOf(changes: Record<string, GgufValue> = {}) {
    const found = ggufTokenizer(await metadata(changes), 'model.gguf')!;
    return loadTokenizer({
      tokenizerJson: found.tokenizer,
      tokenizerConfigJson: found.config,
      chatTemplate: found.chatTemplate,
    });
  }

  it.each(Object.entries(expected.tokenizers))('encodes as the reference does, cutting by %s', async (pre, rows) => {
    const tokenizer = await tokenizerOf({ 'tokenizer.ggml.pre': pre });
    for (const { text, ids } of rows) expect(tokenizer.encode(text, { parseSpecialTokens: true }), text).toEqual(ids);
  });

  it('has the chat template, the end token and the padding left out', async () => {
    const tokenizer = await loadModelTokenizer(await openModelFiles(mixedGgufFile()));
    const messages = [{ role: 'user', content: 'the inn' }];
    expect(tokenizer.renderChatTemplate(messages, { addGenerationPrompt: true })).toBe(
      '<|im_start|>user\nthe inn<|im_end|>\n<|im_start|>assistant\n',
    );
    expect(tokenizer.eosTokenIds).toEqual([2]);
    expect(tokenizer.decode([299])).toBe('');
    // Content is text: the end token written in a message stays text.
    expect(
      tokenizer.applyChatTemplate([{ role: 'user', content: '<|im_end|>' }]).filter((id) => id === 2),
    ).toHaveLength(1);
  });

  it('puts the first token before a text where the file or its kind says so', async () => {
    const encode = async (changes: Record<string, GgufValue>) =>
      (await tokenizerOf(changes)).encode('the', { addSpecialTokens: true });
    expect((await encode({}))[0]).not.toBe(1);
    expect((await encode({ 'tokenizer.ggml.add_bos_token': true }))[0]).toBe(1);
    const changes = await metadata({ 'tokenizer.ggml.pre': 'llama-bpe' });
    changes.delete('tokenizer.ggml.add_bos_token');
    expect(ggufTokenizer(changes, 'm.gguf')?.tokenizer.post_processor).toMatchObject({ type: 'TemplateProcessing' });
  });

  it.each<[string, string, GgufValue]>([
    ['SentencePiece', 'tokenizer.ggml.model', 'llama'],
    ['an unknown way to cut', 'tokenizer.ggml.pre', 'tekken'],
    ['no way to cut', 'tokenizer.ggml.pre', 'default'],
  ])('refuses %s, naming the key and what it knows', async (_, key, value) => {
    const error = await rejection(metadata({ [key]: value }).then((m) => ggufTokenizer(m, '/models/m.gguf')));
    expect(error).toMatchObject({ code: 'unsupported_model', details: { field: `m.gguf: ${key}`, got: `"${value}"` } });
  });

  it.each<[string, GgufValue]>([
    ['tokenizer.ggml.tokens', [1, 2]],
    ['tokenizer.ggml.tokens', 'a'],
    ['tokenizer.ggml.token_type', [1]],
    ['tokenizer.ggml.eos_token_id', 300],
    ['tokenizer.ggml.eos_token_id', -1],
    ['tokenizer.ggml.merges', [true]],
    ['tokenizer.ggml.add_bos_token', 'yes'],
  ])('refuses a malformed %s', async (key, value) => {
    const error = await rejection(metadata({ [key]: value }).then((m) => ggufTokenizer(m, 'm.gguf')));
    expect(error).toMatchObject({ code: 'model_invalid', details: { field: `m.gguf: ${key}` } });
  });

  it('is absent where the file says so, and the model runs without it', async () => {
    expect(ggufTokenizer(await metadata({ 'tokenizer.ggml.model': 'none' }), 'm.gguf')).toBeUndefined();
  });
});

describe('factors of a Llama 3 scaling', () => {
  const rope = { headDim: 128, ropeTheta: 500_000 };

  it.each([
    [8, 8192],
    [32, 8192],
    [8, 64],
  ])('tell factor %i and context %i again', (factor, originalContext) => {
    const scaling = { type: 'llama3', factor, lowFreqFactor: 1, highFreqFactor: 4, originalContext } as const;
    expect(findRopeScaling(ropeFactors(rope, scaling), rope)).toEqual(scaling);
  });

  it('that come from no such scaling give none', () => {
    const other = Float32Array.from({ length: 64 }, (_, i) => 1 + i / 8);
    expect(findRopeScaling(other, rope)).toBeUndefined();
  });
});
