import { cp, mkdir, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expectSameBits, rejection, temporaryDirectory, tinyModelDirectory, tinyModels } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { ModelDirectory, readModelConfig } from './model-directory.js';
import { readSafetensors, type TensorToWrite, writeSafetensors } from './safetensors.js';

type Tensors = Map<string, TensorToWrite & { data: Float32Array }>;

/** A copy of a tiny model that a test may damage; its tensors are changed by `edit` before they are written. */
async function copyModel(directory: string, edit?: (tensors: Tensors) => void): Promise<void> {
  await cp(tinyModelDirectory('llama-tied'), directory, { recursive: true });
  if (edit === undefined) return;
  const path = join(directory, 'model.safetensors');
  const tensors: Tensors = await readSafetensors(path);
  edit(tensors);
  await writeSafetensors(path, tensors.values());
}

/** Splits model.safetensors into shards of about a third each, with an index. */
async function shard(directory: string): Promise<readonly string[]> {
  const path = join(directory, 'model.safetensors');
  const tensors = [...(await readSafetensors(path)).values()];
  const weightMap: Record<string, string> = {};
  const names = [1, 2, 3].map((n) => `model-0000${n}-of-00003.safetensors`);
  for (const [i, name] of names.entries()) {
    const part = tensors.filter((_, at) => at % 3 === i);
    await writeSafetensors(join(directory, name), part);
    for (const tensor of part) weightMap[tensor.name] = name;
  }
  await writeFile(join(directory, 'model.safetensors.index.json'), JSON.stringify({ weight_map: weightMap }));
  await rm(path);
  return names;
}

async function openError(directory: string): Promise<unknown> {
  return rejection(ModelDirectory.open(directory));
}

describe('ModelDirectory', () => {
  it.each(tinyModels)('opens %s and reads each tensor of it', async (name) => {
    await using model = await ModelDirectory.open(tinyModelDirectory(name));
    const source = await readSafetensors(join(tinyModelDirectory(name), 'model.safetensors'));
    expect(model.specs).toHaveLength(source.size);
    for (const { name: tensor } of model.specs)
      expectSameBits(await model.read(tensor), source.get(tensor)!.data, tensor);
  });

  it('reads a sharded model as the whole one', async () => {
    await using directory = await temporaryDirectory();
    await copyModel(directory.path);
    await shard(directory.path);
    await using sharded = await ModelDirectory.open(directory.path);
    await using whole = await ModelDirectory.open(tinyModelDirectory('llama-tied'));
    expect(sharded.sources).toHaveLength(3);
    for (const { name } of whole.specs) expectSameBits(await sharded.read(name), await whole.read(name), name);
  });

  it('names a shard that is missing, and one that is cut with the tensor in it', async () => {
    await using directory = await temporaryDirectory();
    await copyModel(directory.path);
    const [first, second] = await shard(directory.path);
    await truncate(join(directory.path, second!), 50_000);
    expect(await openError(directory.path)).toMatchObject({
      code: 'model_invalid',
      message: expect.stringMatching(/^model-00002-of-00003\.safetensors: .*tensor model\.\S+, got 50000 bytes/),
    });
    await rm(join(directory.path, first!));
    expect(await openError(directory.path)).toMatchObject({
      code: 'model_invalid',
      details: { expected: '3 shards', got: expect.stringContaining('model-00001-of-00003.safetensors') },
    });
  });

  it('refuses an index that leads out of the directory, or names a tensor that its shard has not', async () => {
    await using directory = await temporaryDirectory();
    const inner = join(directory.path, 'inner');
    await mkdir(inner);
    await copyModel(inner);
    await rename(join(inner, 'model.safetensors'), join(directory.path, 'outside.safetensors'));
    const index = (map: unknown) =>
      writeFile(join(inner, 'model.safetensors.index.json'), JSON.stringify({ weight_map: map }));
    for (const map of [
      { 'model.norm.weight': '../outside.safetensors' },
      { a: '/etc/passwd' },
      { a: 3 },
      ['a'],
      null,
    ]) {
      await index(map);
      expect(await openError(inner)).toMatchObject({ code: 'model_invalid' });
    }
    await rename(join(directory.path, 'outside.safetensors'), join(inner, 'part.safetensors'));
    await index({ 'model.norm.weights': 'part.safetensors' });
    expect(await openError(inner)).toMatchObject({
      code: 'model_invalid',
      details: { field: 'part.safetensors: model.norm.weights' },
    });
  });

  it('tells a missing directory, a missing config, a broken one and missing weights apart', async () => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'model');
    expect(await openError(path)).toMatchObject({ code: 'unknown_model', details: { field: path } });
    await mkdir(path);
    expect(await openError(path)).toMatchObject({
      code: 'model_invalid',
      details: { field: 'config.json', got: 'no such file' },
    });
    await writeFile(join(path, 'config.json'), '{"model_type": "lla');
    expect(await openError(path)).toMatchObject({
      code: 'model_invalid',
      details: { field: 'config.json', expected: 'JSON' },
    });
    await writeFile(join(path, 'config.json'), '[]');
    expect(await openError(path)).toMatchObject({ code: 'model_invalid', details: { got: 'a list' } });
    await cp(join(tinyModelDirectory('llama-tied'), 'config.json'), join(path, 'config.json'));
    expect(await openError(path)).toMatchObject({ code: 'model_invalid', details: { got: 'neither' } });
    await writeFile(join(path, 'config.json'), JSON.stringify({ model_type: 'mamba' }));
    expect(await openError(path)).toMatchObject({ code: 'unsupported_model', details: { got: '"mamba"' } });
    expect(await openError(join(path, 'config.json'))).toMatchObject({ code: 'unknown_model' });
  });

  it('names a tensor of a wrong shape with both shapes', async () => {
    await using directory = await temporaryDirectory();
    const name = 'model.layers.1.mlp.up_proj.weight';
    await copyModel(directory.path, (tensors) => {
      tensors.set(name, { name, shape: [128, 63], data: new Float32Array(128 * 63) });
    });
    expect(await openError(directory.path)).toMatchObject({
      code: 'model_invalid',
      details: { field: `model.safetensors: ${name}`, expected: 'shape [128, 64]', got: '[128, 63]' },
    });
  });

  it('names a missing tensor, and hints at tied embeddings when it is the head', async () => {
    await using directory = await temporaryDirectory();
    await copyModel(directory.path, (tensors) => tensors.delete('model.layers.0.self_attn.v_proj.weight'));
    expect(await openError(directory.path)).toMatchObject({
      code: 'model_invalid',
      details: { field: 'model: model.layers.0.self_attn.v_proj.weight', got: 'none' },
    });
    await copyModel(directory.path);
    const { rawConfig } = await readModelConfig(directory.path);
    const config = { ...rawConfig, tie_word_embeddings: false };
    await writeFile(join(directory.path, 'config.json'), JSON.stringify(config));
    expect(await openError(directory.path)).toMatchObject({
      code: 'model_invalid',
      details: { remedy: expect.stringContaining('tie_word_embeddings') },
    });
  });

  it('refuses a tensor that has no place in the architecture, but not a copy of a tied head or a RoPE buffer', async () => {
    await using directory = await temporaryDirectory();
    const add = (name: string, shape: readonly number[]) => (tensors: Tensors) => {
      tensors.set(name, { name, shape, data: new Float32Array(shape.reduce((a, b) => a * b)) });
    };
    await copyModel(directory.path, add('model.layers.0.self_attn.q_proj.bias', [64]));
    expect(await openError(directory.path)).toMatchObject({
      code: 'model_invalid',
      details: { field: expect.stringContaining('q_proj.bias') },
    });
    await copyModel(directory.path, (tensors) => {
      add('lm_head.weight', [300, 64])(tensors);
      add('model.layers.0.self_attn.rotary_emb.inv_freq', [8])(tensors);
    });
    await using model = await ModelDirectory.open(directory.path);
    expect(model.config.tiedEmbeddings).toBe(true);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY])(
    'refuses %s among the weights, naming tensor and position',
    async (bad) => {
      await using directory = await temporaryDirectory();
      const name = 'model.layers.1.self_attn.o_proj.weight';
      await copyModel(directory.path, (tensors) => {
        tensors.get(name)!.data[77] = bad;
      });
      await using model = await ModelDirectory.open(directory.path);
      expect(await rejection(model.read(name))).toMatchObject({
        code: 'model_invalid',
        details: { field: `model.safetensors: ${name}`, got: `${bad} at position 77 of 4096` },
      });
    },
  );

  it('takes end tokens from generation_config.json', async () => {
    await using directory = await temporaryDirectory();
    await copyModel(directory.path);
    await writeFile(join(directory.path, 'generation_config.json'), JSON.stringify({ eos_token_id: [5, 2] }));
    await using model = await ModelDirectory.open(directory.path);
    expect(model.config.eosTokenIds).toEqual([5, 2]);
  });
});
