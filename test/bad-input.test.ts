/** What goes wrong at the public door: each refusal has a code, and tells field, expected, got and a remedy. Nothing of it takes the server down. */
import { open, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { readSafetensors, writeSafetensors } from '@loopwright/engine';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { connect, type DatumFor, type LossName, type ServiceConnection, type TrainingClient } from 'loopwright';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectRefusal, failureOf } from './support/failure.js';
import { changeConfig, makeTinyModel } from './support/tiny-model.js';

let folder: TemporaryDirectory;
let service: ServiceConnection;
let training: TrainingClient;

const good: DatumFor<'cross_entropy'> = {
  modelInput: [5, 6, 7],
  lossFnInputs: { targetTokens: [6, 7, 8], weights: [0, 1, 1] },
};

beforeAll(async () => {
  folder = await temporaryDirectory();
  const tiny = await makeTinyModel(join(folder.path, 'tiny'));
  service = await connect({ dataDir: join(folder.path, 'data'), models: { tiny } });
  training = await service.createLoraTrainingClient({ baseModel: 'tiny', rank: 2, seed: 1 });
});

afterAll(async () => {
  await service.close();
  await folder[Symbol.asyncDispose]();
});

describe('models', () => {
  const create = (baseModel: string) => () => service.createLoraTrainingClient({ baseModel, rank: 2 });

  /** A broken copy of the tiny model. */
  async function broken(name: string, breakIt: (directory: string) => Promise<unknown>): Promise<string> {
    const directory = await makeTinyModel(join(folder.path, name));
    await breakIt(directory);
    return directory;
  }

  test('an unknown model', async () => {
    const error = await failureOf(create('no-such-model'));
    expectRefusal(error, {
      code: 'unknown_model',
      field: 'baseModel',
      expected: 'one of tiny, loopwright-tiny, or the absolute path of a model directory',
      got: 'no-such-model',
      remedy: /config\.json.*absolute path/,
    });
  });

  test('a directory by a path from here', async () => {
    const error = await failureOf(create('./models/mine'));
    expectRefusal(error, {
      code: 'unknown_model',
      field: 'baseModel',
      expected: /absolute path/,
      got: './models/mine',
    });
  });

  test('a directory without a config', async () => {
    const directory = await broken('no-config', (path) => rm(join(path, 'config.json')));
    const error = await failureOf(create(directory));
    expectRefusal(error, {
      code: 'model_invalid',
      field: 'baseModel',
      expected: 'config.json',
      got: /none/,
      remedy: /directory/,
    });
  });

  test('an architecture that the engine does not run', async () => {
    const directory = await broken('other', (path) => changeConfig(path, { model_type: 'mamba' }));
    const error = await failureOf(create(directory));
    expectRefusal(error, { code: 'unsupported_model', field: /model_type/, expected: /llama/, got: /mamba/ });
  });

  test('weights cut in the middle', async () => {
    const directory = await broken('cut', (path) => truncate(join(path, 'model.safetensors'), 100_000));
    const error = await failureOf(create(directory));
    expectRefusal(error, {
      code: 'model_invalid',
      field: /model\.safetensors/,
      expected: /bytes/,
      got: /100000|bytes/,
    });
  });

  test('a weight of a wrong shape', async () => {
    const directory = await broken('shape', (path) => changeConfig(path, { intermediate_size: 96 }));
    const error = await failureOf(create(directory));
    expectRefusal(error, { code: 'model_invalid', field: /mlp/, expected: /96/, got: /128/ });
  });

  test('NaN in the weights', async () => {
    const directory = await broken('nan', async (path) => {
      const tensors = [...(await readSafetensors(join(path, 'model.safetensors'))).values()];
      tensors[0]!.data[17] = Number.NaN;
      await writeSafetensors(
        join(path, 'model.safetensors'),
        tensors.map(({ name, shape, data }) => ({ name, shape, data })),
      );
    });
    const error = await failureOf(create(directory));
    expectRefusal(error, { code: 'model_invalid', field: /./, expected: /finite/, got: /NaN/ });
  });

  test('the server goes on after all that', async () => {
    expect((await training.forward([good], 'cross_entropy')).outputs).toHaveLength(1);
  });
});

describe('sessions', () => {
  test.each([0, -1, 1.5, 257, Number.NaN])('rank %s', async (rank) => {
    const error = await failureOf(() => service.createLoraTrainingClient({ baseModel: 'tiny', rank }));
    expectRefusal(error, {
      code: 'invalid_argument',
      field: 'rank',
      expected: /1 to 256/,
      got: String(rank),
      remedy: /8 to 64/,
    });
  });

  test('a session that was stopped', async () => {
    const stopped = await service.createLoraTrainingClient({ baseModel: 'tiny', rank: 2 });
    await service.stopSession(stopped.name);
    await expect
      .poll(async () => (await service.listSessions({ nameContains: stopped.name }))[0]?.status)
      .toBe('Stopped');
    const error = await failureOf(() => stopped.forwardBackward([good], 'cross_entropy'));
    expectRefusal(error, { code: 'session_not_active', field: 'session', expected: /Running/, got: 'Stopped' });
    expect(error.message).toMatch(/Stopped/);
  });

  test('a name that is taken', async () => {
    const error = await failureOf(() =>
      service.createLoraTrainingClient({ baseModel: 'tiny', rank: 2, name: training.name }),
    );
    expectRefusal(error, { code: 'session_exists', field: /[nN]ame/, expected: /./, got: /./ });
  });

  test('a saved version that there is not', async () => {
    const arn = 'arn:aws:sagemaker:self-hosted-1:000000000000:model-package/sagemaker-default/999';
    const error = await failureOf(() => service.createTrainingClientFromState({ modelPackageArn: arn }));
    expectRefusal(error, { code: 'unknown_version', field: /./, expected: /version/, got: /999/, remedy: /list/ });
  });
});

describe('batches', () => {
  const pass = (data: readonly unknown[], loss = 'cross_entropy', config?: object) =>
    // The compiler refuses these; programs without it must be told as well.
    failureOf(() => training.forwardBackward(data as readonly DatumFor<LossName>[], loss as LossName, config as never));

  test('no datums', async () => {
    expectRefusal(await pass([]), { code: 'invalid_argument', field: 'data', expected: 'one or more', got: 'none' });
  });

  test('a datum without tokens', async () => {
    const error = await pass([good, { modelInput: [], lossFnInputs: { targetTokens: [], weights: [] } }]);
    expectRefusal(error, { code: 'invalid_argument', field: 'data[1].modelInput', expected: /token/, got: /./ });
  });

  test('a list that is one too short', async () => {
    const error = await pass([{ modelInput: [5, 6, 7], lossFnInputs: { targetTokens: [6, 7, 8], weights: [1, 1] } }]);
    expectRefusal(error, { code: 'invalid_argument', field: /data\[0\].*weights/, expected: /3/, got: /2/ });
  });

  test('a loss that there is not', async () => {
    const error = await pass([good], 'dpo');
    expectRefusal(error, { code: 'invalid_argument', field: /loss/, expected: /importance_sampling/, got: /./ });
  });

  test('a key that the loss does not have', async () => {
    const datum = { modelInput: [5], lossFnInputs: { targetTokens: [6], weights: [1], wieghts: [1] } };
    const input = await pass([datum]);
    expectRefusal(input, {
      code: 'invalid_argument',
      field: /data\[0\].*wieghts/,
      expected: /weights/,
      got: /unknown/,
    });
    const config = await pass([good], 'cross_entropy', { beta: 1 });
    expectRefusal(config, { code: 'invalid_argument', field: /config.*beta/, expected: /./, got: /./ });
  });

  test('an input that the loss needs and lacks', async () => {
    const error = await pass([good], 'importance_sampling');
    expectRefusal(error, { code: 'invalid_argument', field: /data\[0\]/, expected: /./, got: /./ });
  });

  test('a token beyond the vocabulary', async () => {
    const error = await pass([{ modelInput: [300], lossFnInputs: { targetTokens: [6], weights: [1] } }]);
    expectRefusal(error, { code: 'invalid_argument', field: /modelInput/, expected: /vocabulary|299|300/, got: /300/ });
  });

  test('a number that is none, where its weight counts', async () => {
    const error = await pass([{ modelInput: [5], lossFnInputs: { targetTokens: [6], weights: [Number.NaN] } }]);
    expectRefusal(error, { code: 'invalid_argument', field: /data\[0\].*weights/, expected: /finite/, got: /NaN/ });
  });

  test.each([0, -1e-4, 0.011, Number.NaN])('learning rate %s', async (learningRate) => {
    const error = await failureOf(() => training.optimStep({ learningRate }));
    expectRefusal(error, {
      code: 'invalid_argument',
      field: /learningRate/,
      expected: /0\.01/,
      got: String(learningRate),
      remedy: /usual/,
    });
  });

  test('a refused pass leaves nothing behind: the next pass and step work', async () => {
    await failureOf(() => training.forwardBackward([], 'cross_entropy'));
    const fresh = await service.createLoraTrainingClient({ baseModel: 'tiny', rank: 2, seed: 1 });
    await failureOf(() => fresh.forwardBackward([], 'cross_entropy'));
    const work = fresh.forwardBackward([good], 'cross_entropy');
    expect((await fresh.optimStep({ learningRate: 1e-4 })).metrics['optim/step']).toBe(1);
    expect((await work).outputs).toHaveLength(1);
    await fresh.close();
  });
});

describe('sampling', () => {
  test('a prompt longer than the context', async () => {
    const sampler = training.createSamplingClient();
    const error = await failureOf(() =>
      sampler.sample(
        Array.from({ length: 513 }, () => 5),
        { maxTokens: 1 },
      ),
    );
    expectRefusal(error, { code: 'context_length_exceeded', field: /./, expected: /512/, got: /513/ });
  });

  test('an empty prompt, and options out of range', async () => {
    const sampler = training.createSamplingClient();
    expectRefusal(await failureOf(() => sampler.sample([])), {
      code: 'invalid_argument',
      field: 'prompt',
      expected: /token/,
      got: /./,
    });
    expectRefusal(await failureOf(() => sampler.sample([5], { temperature: -1 })), {
      code: 'invalid_argument',
      field: /temperature/,
      expected: /0 to 2/,
      got: '-1',
    });
    expectRefusal(await failureOf(() => sampler.sample([5], { numSamples: 0 })), {
      code: 'invalid_argument',
      field: /numSamples/,
      expected: /1 to/,
      got: '0',
    });
  });
});

describe('connections', () => {
  test('a data directory that another process works on', async () => {
    const error = await failureOf(() => connect({ dataDir: join(folder.path, 'data') }));
    expectRefusal(error, {
      code: 'data_dir_in_use',
      field: 'dataDir',
      expected: /no other/,
      got: /data/,
      remedy: /another data directory/,
    });
  });

  test('an address that is none, and both an address and a data directory', async () => {
    expectRefusal(await failureOf(() => connect({ url: 'localhost:80' })), {
      code: 'invalid_argument',
      field: /[uU]rl/,
      expected: /http/,
      got: /./,
    });
    const both = { url: 'http://127.0.0.1:1', dataDir: '/nowhere' } as unknown as { url: string };
    expectRefusal(await failureOf(() => connect(both)), {
      code: 'invalid_argument',
      field: 'dataDir',
      expected: /either/,
      got: 'both',
      remedy: /./,
    });
  });

  test('a file where the data directory should be', async () => {
    const path = join(folder.path, 'a-file');
    await (await open(path, 'w')).close();
    const error = await failureOf(() => connect({ dataDir: path }));
    expectRefusal(error, {
      code: 'invalid_argument',
      field: 'dataDir',
      expected: /directory/,
      got: /a-file/,
      remedy: /another/,
    });
  });
});
