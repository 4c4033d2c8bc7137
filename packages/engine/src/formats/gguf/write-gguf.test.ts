import { readFileSync } from 'node:fs';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import {
  expectClose,
  expectSameBits,
  fixturePath,
  type GgufExpected,
  loraAdapterDirectory,
  mixedGgufFile,
  readFixtureJson,
  rejection,
  type TinyModel,
  temporaryDirectory,
  tinyModelDirectory,
} from '@loopwright/testkit';
import { loadTokenizer } from '@loopwright/text';
import { describe, expect, it } from 'vitest';
import { base, prompt, tinyEngine } from '../../local/testing/tiny-engine.js';
import { readAdapter } from '../adapter.js';
import { mergeAdapter } from '../merged-model.js';
import type { ModelSource } from '../model-source.js';
import { loadModelTokenizer } from '../model-tokenizer.js';
import { widenFloat16 } from '../numbers.js';
import { openModel } from '../open-model.js';
import { bytesOf } from '../source-file.js';
import { GgufFile } from './gguf-file.js';
import { toHalf, toQ80 } from './quantize.js';
import { writeGguf } from './write-gguf.js';

const expected = readFixtureJson<GgufExpected>('gguf/expected.json');

/** A copy of a tiny model with changes to its config, and files beside it. */
async function changedModel(
  model: TinyModel,
  directory: string,
  { config = {}, files = {} }: { config?: Record<string, unknown>; files?: Record<string, string> },
): Promise<string> {
  const target = path.join(directory, 'model');
  await mkdir(target);
  await cp(tinyModelDirectory(model), target, { recursive: true });
  const json = JSON.parse(await readFile(path.join(target, 'config.json'), 'utf8')) as Record<string, unknown>; // Ours.
  await writeFile(path.join(target, 'config.json'), JSON.stringify({ ...json, ...config }));
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(target, name), text);
  return target;
}

describe('writing a GGUF file', () => {
  it.each(['llama-tied', 'llama-untied', 'llama-rope3', 'qwen2', 'qwen3'] as const)(
    'gives the same model of %s again, each value to the nearest of half precision',
    async (name) => {
      await using directory = await temporaryDirectory();
      await using model = await openModel(tinyModelDirectory(name));
      const file = path.join(directory.path, 'model.gguf');
      const { sizeBytes, hasTokenizer } = await writeGguf(file, model, { type: 'f16', name });
      expect((await readFile(file)).length).toBe(sizeBytes);
      expect(hasTokenizer).toBe(false);
      await using written = await openModel(file);
      // The tokens that begin and end a text belong to the tokenizer, and so are not said here.
      expect(written.config).toEqual({ ...model.config, eosTokenIds: [], bosTokenId: null });
      for (const { name: tensor, shape } of model.specs) {
        const [before, after] = [await model.read(tensor), await written.read(tensor)];
        if (shape.length === 1) expectSameBits(after, before, tensor);
        else {
          const halves = new Float32Array(before.length);
          widenFloat16(toHalf(before), halves);
          expectSameBits(after, halves, tensor);
        }
      }
    },
  );

  it('folds an adapter in, and in blocks of 8 bits stays near to it', async () => {
    await using directory = await temporaryDirectory();
    await using model = await openModel(tinyModelDirectory('qwen3'));
    const merged = mergeAdapter(model, await readAdapter(loraAdapterDirectory('qwen3')));
    const file = path.join(directory.path, 'model.gguf');
    await writeGguf(file, merged, { type: 'q8_0', name: 'merged' });
    await using gguf = await GgufFile.open(file);
    expect(gguf.info('blk.0.attn_q.weight').type).toBe('Q8_0');
    expect(gguf.info('blk.0.attn_q_norm.weight').type).toBe('F32');
    await using test = await tinyEngine('qwen3', { directory: file });
    await using adapted = await tinyEngine('qwen3');
    const weights = { type: 'version', id: 'v', directory: loraAdapterDirectory('qwen3') } as const;
    const ids = prompt(30);
    const [a, b] = [
      await test.engine.computeLogprobs({ prompt: ids, weights: base }),
      await adapted.engine.computeLogprobs({ prompt: ids, weights }),
    ];
    // The adapter moves these log-probs by 2.5 on average.
    const tolerance = {
      kind: 'elements',
      abs: 0.3,
      rel: 0,
      mean: 0.08,
      reason: 'measured 0.15, mean 0.05: 8 bits',
    } as const;
    expectClose(a.logprobs.subarray(1), b.logprobs.subarray(1), tolerance);
  });

  it('carries tokenizer and chat template over, so that texts become the same tokens', async () => {
    await using directory = await temporaryDirectory();
    await using model = await openModel(mixedGgufFile());
    const file = path.join(directory.path, 'again.gguf');
    expect((await writeGguf(file, model, { type: 'f16', name: 'again' })).hasTokenizer).toBe(true);
    await using original = await GgufFile.open(mixedGgufFile());
    await using again = await GgufFile.open(file);
    for (const [key, value] of original.metadata) {
      if (key.startsWith('tokenizer.')) expect(again.metadata.get(key), key).toEqual(value);
    }
  });

  it('carries over the tokenizer of a model directory, SmolLM2', async () => {
    await using directory = await temporaryDirectory();
    const tokenizer = (name: string) => readFileSync(fixturePath(`tokenizer/smollm2/${name}`));
    const texts = new Map([
      ['tokenizer.json', gunzipSync(tokenizer('tokenizer.json.gz')).toString()],
      ['tokenizer_config.json', tokenizer('tokenizer_config.json').toString()],
    ]);
    await using small = await openModel(tinyModelDirectory('llama-tied'));
    const { rawConfig, sources, directory: source } = small;
    // The tiny model with as many rows of embeddings as the tokenizer has tokens, and a few more.
    const embedding = 'model.embed_tokens.weight';
    const shape = [49_160, 64];
    const model: ModelSource = {
      directory: source,
      rawConfig,
      sources,
      config: { ...small.config, vocabSize: 49_160 },
      specs: small.specs.map((spec) => (spec.name === embedding ? { ...spec, shape } : spec)),
      files: { read: async (name) => (texts.has(name) ? new TextEncoder().encode(texts.get(name)) : undefined) },
      read: async (name) => (name === embedding ? new Float32Array(49_160 * 64) : small.read(name)),
      [Symbol.asyncDispose]: async () => undefined,
    };
    const file = path.join(directory.path, 'smol.gguf');
    await writeGguf(file, model, { type: 'q8_0', name: 'smol' });
    await using written = await openModel(file);
    const [after, before] = [
      await loadModelTokenizer(written.files),
      loadTokenizer({
        tokenizerJson: texts.get('tokenizer.json')!,
        tokenizerConfigJson: texts.get('tokenizer_config.json'),
      }),
    ];
    for (const text of ['Hello 123 world', "it's  <|im_end|>\n\n", 'naïve — 東京 🙂']) {
      expect(after.encode(text, { parseSpecialTokens: true })).toEqual(
        before.encode(text, { parseSpecialTokens: true }),
      );
    }
    expect(after.eosTokenIds).toEqual(before.eosTokenIds);
    expect(after.hasChatTemplate).toBe(before.hasChatTemplate);
  });

  it('writes a vocabulary of single characters as single bytes', async () => {
    await using directory = await temporaryDirectory();
    const characters = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i));
    const vocab = Object.fromEntries(['<|pad|>', '<|eos|>', '\n', ...characters].map((text, id) => [text, id]));
    const added = ['<|pad|>', '<|eos|>'].map((content, id) => ({ id, content, special: true }));
    const tokenizerJson = JSON.stringify({
      added_tokens: added,
      decoder: { type: 'Fuse' },
      model: { type: 'BPE', vocab, merges: [] },
    });
    const source = await changedModel('llama-tied', directory.path, { files: { 'tokenizer.json': tokenizerJson } });
    await using model = await openModel(source);
    const file = path.join(directory.path, 'model.gguf');
    await writeGguf(file, model, { type: 'f16', name: 'letters' });
    await using written = await openModel(file);
    const [after, before] = [await loadModelTokenizer(written.files), loadTokenizer({ tokenizerJson })];
    const text = '12 + 7 = 19\nyes<|eos|>';
    const ids = before.encode(text, { parseSpecialTokens: true });
    expect(after.encode(text, { parseSpecialTokens: true })).toEqual(ids);
    expect(after.decode(ids, { skipSpecialTokens: false })).toBe(text);
  });

  it.each<[string, TinyModel, { config?: Record<string, unknown>; files?: Record<string, string> }, string, string]>([
    ['an architecture that has no such files', 'gemma3', {}, 'unsupported_model', 'model_type'],
    [
      'a tokenizer that cuts texts in its own way',
      'qwen2',
      {
        files: {
          'tokenizer.json': JSON.stringify({
            pre_tokenizer: { type: 'Whitespace' },
            model: { type: 'BPE', vocab: { ab: 3, a: 4, b: 5 }, merges: ['a b'] },
          }),
        },
      },
      'unsupported_model',
      'tokenizer.json: pre_tokenizer',
    ],
    [
      'a tokenizer of another model',
      'qwen2',
      { files: { 'tokenizer.json': JSON.stringify({ model: { type: 'BPE', vocab: { a: 300 }, merges: [] } }) } },
      'model_invalid',
      'tokenizer.json',
    ],
  ])('refuses %s before it writes', async (_, name, changes, code, field) => {
    await using directory = await temporaryDirectory();
    await using model = await openModel(await changedModel(name, directory.path, changes));
    const file = path.join(directory.path, 'model.gguf');
    const error = await rejection(writeGguf(file, model, { type: 'f16', name: 'x' }));
    expect(error).toMatchObject({ code, details: { field } });
    expect(await rejection(readFile(file))).toMatchObject({ code: 'ENOENT' });
  });

  it('gives a model with windows of attention a context in which they make no difference', async () => {
    await using directory = await temporaryDirectory();
    await using model = await openModel(tinyModelDirectory('mistral'));
    const file = path.join(directory.path, 'model.gguf');
    expect(await writeGguf(file, model, { type: 'f16', name: 'm' })).toMatchObject({ contextLength: 8 });
    await using written = await openModel(file);
    expect(written.config).toMatchObject({ architecture: 'llama', contextLength: 8, slidingWindow: null });
  });

  it('reports a full disk, and leaves nothing', async () => {
    await using directory = await temporaryDirectory();
    await using model = await openModel(tinyModelDirectory('qwen2'));
    const file = path.join(directory.path, 'model.gguf');
    const full = writeGguf(file, model, { type: 'f16', name: 'x', freeBytes: async () => 10 });
    expect(await rejection(full)).toMatchObject({ code: 'disk_full' });
    expect(await rejection(readFile(file))).toMatchObject({ code: 'ENOENT' });
  });
});

describe('quantizing', () => {
  it('to Q8_0 gives the blocks that ggml makes', () => {
    const { values, blocks_hex } = expected.q8_0;
    expect(Buffer.from(toQ80(Float32Array.from(values))).toString('hex')).toBe(blocks_hex);
  });

  it('to half precision is exact where it can be, and to the nearest even elsewhere', () => {
    const all = Uint16Array.from({ length: 65_536 }, (_, bits) => bits);
    const values = new Float32Array(all.length);
    widenFloat16(all, values);
    const back = toHalf(values);
    for (let bits = 0; bits < 65_536; bits++) {
      const isNumber = !((bits & 0x7c00) === 0x7c00 && (bits & 0x3ff) !== 0);
      if (isNumber && back[bits] !== bits) throw new Error(`${bits.toString(16)} became ${back[bits]!.toString(16)}`);
    }
    const half = (value: number) => toHalf(Float32Array.of(value))[0];
    expect(half(1 + 2 ** -11)).toBe(0x3c00);
    expect(half(1 + 3 * 2 ** -11)).toBe(0x3c02);
    expect(half(1 + 2 ** -11 + 2 ** -20)).toBe(0x3c01);
    expect(half(65_519.996)).toBe(0x7bff);
    expect(half(65_520)).toBe(0x7c00);
    expect(half(2 ** -25)).toBe(0);
    expect(half(2 ** -25 * 1.0001)).toBe(1);
    expect(half(-3 * 2 ** -25)).toBe(0x8002);
    expect(half(2047.5 * 2 ** -25)).toBe(0x0400);
    expect(bytesOf(Float32Array.of(0)).length).toBe(4);
  });
});
