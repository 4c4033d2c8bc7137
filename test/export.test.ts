/** `loopwright export`: what runs saved, as files that other tools read. What those tools make of them is in docs/results. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loraAdapterDirectory, temporaryDirectory, tinyModelDirectory } from '@loopwright/testkit';
import { connect, sftDatum } from 'loopwright';
import { expect, test } from 'vitest';
import { runCommand } from './support/command.js';

const prompt = [5, 6, 7, 8];

/** Greedy tokens of a model by its path, or of saved weights. */
async function greedy(model: { baseModel: string } | { modelPackageArn: string }, dataDir: string): Promise<number[]> {
  await using service = await connect({ dataDir });
  const sampler = await service.createSamplingClient(model);
  const { sequences } = await sampler.sample(prompt, { maxTokens: 12, temperature: 0 });
  return [...sequences[0]!.tokens];
}

test('a saved version is exported by its ARN as merged directory, as GGUF and as adapter, and samples as before', async () => {
  await using folder = await temporaryDirectory();
  const home = join(folder.path, 'home');
  const dataDir = join(home, 'data');
  const baseModel = tinyModelDirectory('qwen3');
  let arn = '';
  {
    await using service = await connect({ dataDir });
    const training = await service.createLoraTrainingClient({ baseModel, rank: 4, seed: 1 });
    const data = [sftDatum({ prompt, completion: [100, 110, 120, 130, 140, 150, 160] })];
    for (let step = 0; step < 40; step++) {
      const pass = training.forwardBackward(data, 'cross_entropy');
      await training.optimStep({ learningRate: 1e-2 });
      await pass;
    }
    arn = (await training.saveWeightsForSampler({ description: 'counts' })).modelPackageArn;
  }
  const tuned = await greedy({ modelPackageArn: arn }, dataDir);
  expect(tuned.slice(0, 7)).toEqual([100, 110, 120, 130, 140, 150, 160]);

  const target = (name: string) => join(folder.path, name);
  const merged = await runCommand(['export', arn, target('merged'), '--max-shard', '0.1MB', '--json'], { home });
  expect(merged.code).toBe(0);
  const files = await readdir(target('merged'));
  expect(merged.events.at(-1)).toMatchObject({ type: 'export-end', format: 'merged', files: expect.any(Array) });
  expect(files).toEqual(expect.arrayContaining(['config.json', 'model.safetensors.index.json']));
  expect(files.filter((name) => name.endsWith('.safetensors')).length).toBeGreaterThan(3);
  expect(await greedy({ baseModel: target('merged') }, join(folder.path, 'other'))).toEqual(tuned);

  const gguf = await runCommand(['export', arn, target('m.gguf'), '--format', 'gguf', '--type', 'f16'], { home });
  expect(gguf.code).toBe(0);
  expect(gguf.stdout).toMatch(/context\s+512 tokens/);
  expect(await greedy({ baseModel: target('m.gguf') }, join(folder.path, 'other'))).toEqual(tuned);

  expect((await runCommand(['export', arn, target('peft'), '--format', 'peft'], { home })).code).toBe(0);
  expect(JSON.parse(await readFile(join(target('peft'), 'adapter_config.json'), 'utf8'))).toMatchObject({
    peft_type: 'LORA',
    r: 4,
    base_model_name_or_path: baseModel,
  });
  // A version of the same name in another data directory: which one is meant must be said, and neither is changed.
  {
    await using service = await connect({ dataDir: `${dataDir}-2` });
    const training = await service.createLoraTrainingClient({ baseModel, rank: 2, seed: 2 });
    expect((await training.saveWeightsForSampler({ description: 'other' })).modelPackageArn).toBe(arn);
  }
  const twice = await runCommand(['export', arn, target('twice'), '--json'], { home });
  expect(twice.code).toBe(1);
  expect(twice.events.at(-1)).toMatchObject({
    error: {
      code: 'invalid_argument',
      details: { got: expect.stringContaining(`${dataDir}-2`), remedy: expect.stringContaining('--data') },
    },
  });
  const named = ['export', arn, target('named.gguf'), '--format', 'gguf', '--type', 'f16', '--data', dataDir];
  expect((await runCommand(named, { home })).code).toBe(0);
  expect((await readFile(target('named.gguf'))).equals(await readFile(target('m.gguf')))).toBe(true);
  // From an adapter's directory it is the same model, with the base that its config names.
  const again = await runCommand(
    ['export', target('peft'), target('again.gguf'), '--format', 'gguf', '--type', 'f16'],
    {
      home,
    },
  );
  expect(again.code).toBe(0);
  const [a, b] = [await readFile(target('m.gguf')), await readFile(target('again.gguf'))];
  expect(a.equals(b)).toBe(true);
});

test('export says what is wrong, and touches nothing', async () => {
  await using folder = await temporaryDirectory();
  const home = join(folder.path, 'home');
  const target = join(folder.path, 'out');
  const adapter = loraAdapterDirectory('llama-tied');
  const base = tinyModelDirectory('llama-tied');
  const run = async (...args: string[]) => runCommand(['export', ...args, '--json'], { home });
  const refused = async (code: string, field: string, ...args: string[]) => {
    const end = await run(...args);
    expect(end.code).toBe(1);
    expect(end.events.at(-1)).toMatchObject({ type: 'error', error: { code, details: { field } } });
  };
  await writeFile(join(folder.path, 'there.gguf'), '');
  await refused('invalid_argument', 'target', base, join(folder.path, 'there.gguf'), '--format', 'gguf');
  await refused('invalid_argument', 'target', base, target, '--format', 'gguf');
  await refused('invalid_argument', 'target', base, folder.path);
  await refused('invalid_argument', 'format', base, target, '--format', 'peft');
  await refused('unknown_model', 'model', 'no-such-model', target);
  await refused('unknown_version', 'model', 'arn:aws:sagemaker:local:0:model-package/x/1', target);
  await refused('checkpoint_mismatch', 'layers.0.q_proj', adapter, target, '--base', tinyModelDirectory('qwen3'));
  await refused('unsupported_model', 'model_type', tinyModelDirectory('gemma3'), `${target}.gguf`, '--format', 'gguf');
  expect((await readdir(folder.path)).sort()).toEqual(['there.gguf']);
  expect((await run(base, target, '--format', 'zip')).code).toBe(2);
});
