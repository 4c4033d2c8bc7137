/** Models by their name on the hub: pulled by the command, trained by that name, and what a session keeps to when the name moves on. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FakeHub, type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { connect } from 'loopwright';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { runCommand } from './support/command.js';
import { expectRefusal, failureOf } from './support/failure.js';
import { makeTinyModel } from './support/tiny-model.js';

const [older, newer] = ['a'.repeat(40), 'b'.repeat(40)] as const;

let folder: TemporaryDirectory;
let hub: FakeHub;

beforeEach(async () => {
  folder = await temporaryDirectory();
  vi.stubEnv('HF_HUB_CACHE', join(folder.path, 'hub'));
  hub = await FakeHub.open({ repositories: {} });
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await hub[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

async function filesOf(directory: string): Promise<Record<string, Uint8Array>> {
  const names = await readdir(directory);
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await readFile(join(directory, name))])),
  );
}

function pull(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const home = join(folder.path, 'home');
  return runCommand(['models', 'pull', ...args], {
    home,
    env: { HF_ENDPOINT: hub.url, HF_HUB_CACHE: join(folder.path, 'hub'), ...env },
  });
}

test('a pulled model trains by its name, and a session keeps to its commit when the name moves on', async () => {
  const files = await filesOf(await makeTinyModel(join(folder.path, 'tiny')));
  hub.repositories['someone/tiny-hub'] = { commit: older, files, license: 'apache-2.0' };
  const dataDir = join(folder.path, 'data');
  let arn: string;
  {
    await using service = await connect({ dataDir });
    const create = () => service.createLoraTrainingClient({ baseModel: 'someone/tiny-hub', rank: 2, seed: 1 });
    expectRefusal(await failureOf(create), {
      code: 'unknown_model',
      field: 'baseModel',
      got: 'someone/tiny-hub',
      expected: /one of/,
      remedy: /loopwright models pull someone\/tiny-hub/,
    });
    expect(hub.requests).toEqual([]);

    const { code, events } = await pull(['someone/tiny-hub', '--json']);
    expect(code).toBe(0);
    expect(events[0]).toMatchObject({ type: 'pull-start', model: 'someone/tiny-hub', license: { id: 'apache-2.0' } });
    expect(events.at(-1)).toMatchObject({ type: 'pull-end', id: `someone/tiny-hub@${older}`, commit: older });

    expect(await service.listBaseModels()).toContain('someone/tiny-hub');
    const training = await create(); // the same server finds it
    const tokenizer = await training.getTokenizer();
    const modelInput = tokenizer.encode('12+7=19');
    const lossFnInputs = { targetTokens: modelInput, weights: modelInput.map(() => 1) };
    const pass = training.forwardBackward([{ modelInput, lossFnInputs }], 'cross_entropy');
    const update = training.optimStep({ learningRate: 1e-3 });
    await Promise.all([pass, update]);
    arn = (await training.saveState({ description: 'by hub name' })).modelPackageArn;
    const directory = await service.versionDirectory(arn);
    const adapter: unknown = JSON.parse(await readFile(join(directory!, 'adapter_config.json'), 'utf8')); // embedded: it has a folder
    expect(adapter).toMatchObject({ base_model_name_or_path: 'someone/tiny-hub', revision: older });
  }
  // The name moves on to a model that would be exported otherwise.
  const changed = { ...JSON.parse(new TextDecoder().decode(files['config.json'])), rope_theta: 20_000 };
  const config = new TextEncoder().encode(JSON.stringify(changed));
  hub.repositories['someone/tiny-hub'] = { commit: newer, files: { ...files, 'config.json': config } };
  expect((await pull(['someone/tiny-hub'])).stdout).toContain(`someone/tiny-hub@${newer}`);
  await using service = await connect({ dataDir });
  const resumed = await service.createTrainingClientFromStateWithOptimizer({ modelPackageArn: arn });
  await resumed.optimStep({ learningRate: 1e-3 });
  const another = await service.createLoraTrainingClient({ baseModel: 'someone/tiny-hub', rank: 2, seed: 1 });
  expectRefusal(await failureOf(() => another.loadState(arn)), {
    code: 'checkpoint_mismatch',
    field: /./,
    expected: `someone/tiny-hub@${newer}`,
    got: `someone/tiny-hub@${older}`,
  });
  await service.close();

  const exporting = async (model: string, target: string, ...more: string[]) => {
    const path = join(folder.path, target);
    const { code } = await runCommand(['export', model, path, ...more], {
      home: join(folder.path, 'home'),
      env: { HF_HUB_CACHE: join(folder.path, 'hub') },
    });
    expect(code).toBe(0);
    return (name: string): Promise<Record<string, unknown>> => readFile(join(path, name), 'utf8').then(JSON.parse);
  };
  const merged = await exporting(arn, 'merged', '--data', dataDir);
  expect(await merged('config.json')).toMatchObject({ rope_theta: 10_000 });
  const peft = await exporting(arn, 'peft', '--format', 'peft', '--data', dataDir);
  expect(await peft('adapter_config.json')).toMatchObject({
    base_model_name_or_path: 'someone/tiny-hub',
    revision: older,
  });
  const again = await exporting(join(folder.path, 'peft'), 'again');
  expect(await again('config.json')).toMatchObject({ rope_theta: 10_000 });
  const main = await exporting('someone/tiny-hub', 'main');
  expect(await main('config.json')).toMatchObject({ rope_theta: 20_000 });
});

test('a pull that fails says what to do, and exits with 1', async () => {
  hub.repositories['someone/gated'] = {
    commit: older,
    files: { 'config.json': '{}' },
    gated: 'auto',
    license: 'gemma',
  };
  const gated = await pull(['someone/gated'], { HF_TOKEN: 'hf_secret' });
  expect(gated.code).toBe(1);
  expect(gated.stderr).toMatch(/^error model_gated: someone\/gated\n/);
  expect(gated.stderr).toContain('--accept-license');
  expect(gated.stderr).not.toContain('hf_secret');
  const offline = await pull(['someone/else', '--json'], { HF_HUB_OFFLINE: '1' });
  expect(offline.code).toBe(1);
  expect(offline.events).toMatchObject([{ type: 'error', error: { code: 'unknown_model' } }]);
  const wrong = await pull(['./models/mine']);
  expect(wrong.stderr).toMatch(/^error invalid_argument: name\n/);
});
