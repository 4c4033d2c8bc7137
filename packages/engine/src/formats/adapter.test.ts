import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TargetModule } from '@loopwright/protocol';
import {
  expectSameBits,
  loraAdapterDirectory,
  loraAdapters,
  readFixtureJson,
  rejection,
  temporaryDirectory,
} from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { parseModelConfig } from '../local/models/config.js';
import { type AdapterWeights, adapterBaseModel, addLowRankProduct, readAdapter, writeAdapter } from './adapter.js';
import { readSafetensors, type TensorToWrite, writeSafetensors } from './safetensors.js';

function modelConfig(model: string) {
  return parseModelConfig(readFixtureJson(`tiny/${model}/config.json`));
}

/** A copy of the q/v adapter of rank 4 whose config or tensors a test may change. */
async function copyAdapter(
  directory: string,
  change: { readonly config?: Record<string, unknown>; readonly tensors?: (list: TensorToWrite[]) => TensorToWrite[] },
): Promise<void> {
  await cp(loraAdapterDirectory('llama-tied-qv-r4'), directory, { recursive: true });
  if (change.config !== undefined) {
    const path = join(directory, 'adapter_config.json');
    const config: unknown = JSON.parse(await readFile(path, 'utf8'));
    await writeFile(path, JSON.stringify({ ...(config as object), ...change.config })); // Our own fixture, an object.
  }
  if (change.tensors !== undefined) {
    const path = join(directory, 'adapter_model.safetensors');
    await writeSafetensors(path, change.tensors([...(await readSafetensors(path)).values()]));
  }
}

describe('readAdapter', () => {
  it.each(loraAdapters)('reads %s with the values that PEFT wrote', async (name) => {
    const base = readFixtureJson<{ base_model: string }>(`lora/${name}/expected.json`).base_model.replace('tiny/', '');
    const adapter = await readAdapter(loraAdapterDirectory(name), { model: modelConfig(base) });
    const source = await readSafetensors(join(loraAdapterDirectory(name), 'adapter_model.safetensors'));
    expect(adapter.tensors.size).toBe(source.size / 2);
    const q = adapter.tensors.get('layers.1.q_proj')!;
    expectSameBits(q.A, source.get('base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight')!.data);
    expectSameBits(q.B, source.get('base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight')!.data);
    expect(adapter.scale).toBeCloseTo(readFixtureJson<{ scale: number }>(`lora/${name}/expected.json`).scale, 12);
  });

  it('reads rank, alpha, scale and modules, with and without rank stabilisation', async () => {
    expect(await readAdapter(loraAdapterDirectory('llama-tied-qv-r4'))).toMatchObject({
      rank: 4,
      alpha: 32,
      scale: 8,
      targetModules: ['q_proj', 'v_proj'],
    });
    const stabilized = await readAdapter(loraAdapterDirectory('llama-tied-rslora'));
    expect(stabilized.scale).toBe(16 / Math.sqrt(8));
    const head = await readAdapter(loraAdapterDirectory('llama-untied-lm-head'));
    expect(head.tensors.get('lm_head')).toMatchObject({ inFeatures: 64, outFeatures: 300 });
  });

  it.each<[string, unknown]>([
    ['peft_type', 'IA3'],
    ['task_type', 'SEQ_CLS'],
    ['bias', 'all'],
    ['use_dora', true],
    ['modules_to_save', ['lm_head']],
    ['rank_pattern', { q_proj: 2 }],
    ['alpha_pattern', { q_proj: 2 }],
    ['layers_to_transform', [0]],
    ['trainable_token_indices', [1]],
    ['init_lora_weights', 'pissa_niter_4'],
  ])('refuses an adapter with %s = %j, naming the field', async (field, value) => {
    await using directory = await temporaryDirectory();
    await copyAdapter(directory.path, { config: { [field]: value } });
    expect(await rejection(readAdapter(directory.path))).toMatchObject({
      code: 'checkpoint_mismatch',
      details: { field: `adapter_config.json: ${field}` },
    });
  });

  it.each<[string, unknown]>([
    ['r', 0],
    ['r', 2.5],
    ['r', '4'],
    ['lora_alpha', -1],
    ['target_modules', '.*_proj'],
    ['target_modules', ['q_proj', 'embed_tokens']],
    ['target_modules', []],
  ])('refuses %s = %j as malformed', async (field, value) => {
    await using directory = await temporaryDirectory();
    await copyAdapter(directory.path, { config: { [field]: value } });
    expect(await rejection(readAdapter(directory.path))).toMatchObject({
      code: 'model_invalid',
      details: { field: `adapter_config.json: ${field}` },
    });
  });

  it.each<[string, (list: TensorToWrite[]) => TensorToWrite[]]>([
    [
      'a lora_A without its lora_B',
      (list) => list.filter(({ name }) => !name.endsWith('layers.0.self_attn.q_proj.lora_B.weight')),
    ],
    ['an unknown name', (list) => [...list, { name: 'base_model.model.other', shape: [1], data: new Float32Array(1) }]],
    [
      'a module in the wrong block',
      (list) => list.map((t) => ({ ...t, name: t.name.replace('self_attn.q', 'mlp.q') })),
    ],
    ['another rank', (list) => list.map((t, i) => (i === 0 ? { ...t, shape: [2, 128] } : t))],
    ['NaN', (list) => list.map((t, i) => (i === 3 ? { ...t, data: (t.data as Float32Array).fill(Number.NaN) } : t))],
  ])('refuses weights with %s', async (_, tensors) => {
    await using directory = await temporaryDirectory();
    await copyAdapter(directory.path, { tensors });
    expect(await rejection(readAdapter(directory.path))).toMatchObject({ code: 'model_invalid' });
  });

  it('refuses an adapter of another model: other widths, fewer layers, more layers', async () => {
    const read = (model: string) =>
      rejection(readAdapter(loraAdapterDirectory('llama-tied'), { model: modelConfig(model) }));
    expect(await read('qwen3')).toMatchObject({
      code: 'checkpoint_mismatch',
      details: { field: 'layers.0.q_proj', expected: 'widths 64 to 96', got: '64 to 64' },
    });
    expect(await read('llama-untied')).toMatchObject({
      code: 'checkpoint_mismatch',
      details: { field: 'layers.2.q_proj', got: 'none' },
    });
    const one = { ...modelConfig('llama-tied'), layers: 1 };
    expect(await rejection(readAdapter(loraAdapterDirectory('llama-tied'), { model: one }))).toMatchObject({
      code: 'checkpoint_mismatch',
      details: { got: 'a layer beyond' },
    });
  });

  it('tells a missing directory and a cut file', async () => {
    await using directory = await temporaryDirectory();
    expect(await rejection(readAdapter(directory.path))).toMatchObject({
      code: 'model_invalid',
      details: { field: 'adapter_config.json' },
    });
    await copyAdapter(directory.path, {});
    const path = join(directory.path, 'adapter_model.safetensors');
    await writeFile(path, (await readFile(path)).subarray(0, 4000));
    expect(await rejection(readAdapter(directory.path))).toMatchObject({
      code: 'model_invalid',
      message: expect.stringContaining('cut short'),
    });
  });
});

describe('writeAdapter', () => {
  it.each(loraAdapters)('gives %s back with the same bits and settings', async (name) => {
    await using directory = await temporaryDirectory();
    const path = join(directory.path, 'new', 'adapter');
    const adapter = await readAdapter(loraAdapterDirectory(name));
    const files = await writeAdapter(path, adapter, { baseModel: 'tiny/base' });
    expect([...files].sort()).toEqual(['adapter_config.json', 'adapter_model.safetensors']);
    const again = await readAdapter(path);
    expect({ ...again, tensors: null }).toEqual({ ...adapter, tensors: null });
    const source = await readSafetensors(join(loraAdapterDirectory(name), 'adapter_model.safetensors'));
    const written = await readSafetensors(join(path, 'adapter_model.safetensors'));
    expect([...written.keys()].sort()).toEqual([...source.keys()].sort());
    for (const [tensor, { shape, data }] of source) {
      expect(written.get(tensor)!.shape).toEqual(shape);
      expectSameBits(written.get(tensor)!.data, data, tensor);
    }
  });

  it('writes the settings under the names that PEFT reads', async () => {
    await using directory = await temporaryDirectory();
    const adapter = await readAdapter(loraAdapterDirectory('llama-tied-qv-r4'));
    await writeAdapter(directory.path, adapter, { baseModel: 'tiny/llama-tied' });
    const ours: unknown = JSON.parse(await readFile(join(directory.path, 'adapter_config.json'), 'utf8'));
    const theirs = readFixtureJson<Record<string, unknown>>('lora/llama-tied-qv-r4/adapter/adapter_config.json');
    expect(Object.keys(theirs)).toEqual(expect.arrayContaining(Object.keys(ours as object)));
    expect(ours).toMatchObject({
      peft_type: 'LORA',
      task_type: 'CAUSAL_LM',
      base_model_name_or_path: 'tiny/llama-tied',
      r: 4,
      lora_alpha: 32,
      use_rslora: false,
      target_modules: ['q_proj', 'v_proj'],
      bias: 'none',
    });
  });

  it.each([
    ['tiny/llama-tied', 'tiny/llama-tied', null],
    [`tiny/llama-tied@${'a'.repeat(40)}`, 'tiny/llama-tied', 'a'.repeat(40)],
    ['/models/mine@home', '/models/mine@home', null],
  ])('says of the base %s which one it is, and reads it again', async (baseModel, name, revision) => {
    await using directory = await temporaryDirectory();
    const adapter = await readAdapter(loraAdapterDirectory('llama-tied-qv-r4'));
    await writeAdapter(directory.path, adapter, { baseModel });
    const config: unknown = JSON.parse(await readFile(join(directory.path, 'adapter_config.json'), 'utf8'));
    expect(config).toMatchObject({ base_model_name_or_path: name, revision });
    expect(await adapterBaseModel(directory.path)).toBe(baseModel);
  });

  it('takes no revision of a base by its path, and no base where none is said', async () => {
    await using directory = await temporaryDirectory();
    const read = async (config: object) => {
      await writeFile(join(directory.path, 'adapter_config.json'), JSON.stringify(config));
      return adapterBaseModel(directory.path);
    };
    expect(await read({ base_model_name_or_path: '/models/mine', revision: 'main' })).toBe('/models/mine');
    expect(await read({ base_model_name_or_path: 'org/name', revision: 'main' })).toBe('org/name@main');
    expect(await read({ base_model_name_or_path: null, revision: 'main' })).toBeUndefined();
  });

  it('refuses a scale that PEFT could not say, a malformed key and a wrong length', async () => {
    await using directory = await temporaryDirectory();
    const modules: TargetModule[] = ['q_proj'];
    const pair = { A: new Float32Array(8), B: new Float32Array(8), inFeatures: 4, outFeatures: 4 };
    const adapter = {
      rank: 2,
      alpha: 4,
      scale: 2,
      targetModules: modules,
      tensors: new Map([['layers.0.q_proj', pair]]),
    };
    const write = (change: Partial<AdapterWeights>) =>
      rejection(writeAdapter(directory.path, { ...adapter, ...change }, { baseModel: 'x' }));
    expect(await write({ scale: 3 })).toMatchObject({ code: 'invalid_argument', details: { field: 'scale' } });
    expect(await write({ tensors: new Map([['q_proj', pair]]) })).toMatchObject({ code: 'invalid_argument' });
    const short = { ...pair, B: new Float32Array(7) };
    expect(await write({ tensors: new Map([['layers.0.q_proj', short]]) })).toMatchObject({ code: 'invalid_argument' });
  });
});

describe('addLowRankProduct', () => {
  it.each([1, 2, 4, 5])('adds scale · B·A at rank %d', async (rank) => {
    const [inFeatures, outFeatures, scale] = [3, 5, 10];
    const A = Float32Array.from({ length: rank * inFeatures }, (_, i) => i + 1);
    const B = Float32Array.from({ length: outFeatures * rank }, (_, i) => 2 - i);
    const weight = new Float32Array(outFeatures * inFeatures).fill(1);
    await addLowRankProduct(weight, { A, B, inFeatures, outFeatures, scale });
    for (let out = 0; out < outFeatures; out++) {
      for (let i = 0; i < inFeatures; i++) {
        let sum = 0;
        for (let k = 0; k < rank; k++) sum += B[out * rank + k]! * A[k * inFeatures + i]!;
        expect(weight[out * inFeatures + i]).toBe(1 + scale * sum);
      }
    }
  });

  it('lets other work run in between for a large layer', async () => {
    const [inFeatures, outFeatures] = [1000, 20_000];
    const pair = { A: new Float32Array(inFeatures), B: new Float32Array(outFeatures), inFeatures, outFeatures };
    let turns = 0;
    let done = false;
    const count = () => {
      turns++;
      if (!done) setImmediate(count);
    };
    setImmediate(count);
    await addLowRankProduct(new Float32Array(inFeatures * outFeatures), { ...pair, scale: 1 });
    done = true;
    expect(turns).toBeGreaterThan(2);
  });
});
