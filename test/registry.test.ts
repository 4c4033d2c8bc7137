/** `loopwright registry` against a server with the bundled tiny model: from a save to a directory that other tools read. */
import { createHash } from 'node:crypto';
import { chmod, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory, tinyModelDirectory } from '@loopwright/testkit';
import { type ConnectOptions, connect, ServiceClient, sftDatum } from 'loopwright';
import { expect, test } from 'vitest';
import { runCommand, startCommand } from './support/command.js';

test('versions are listed, judged, measured, downloaded and deleted by the command; files are whole or refused', async () => {
  await using folder = await temporaryDirectory();
  const home = join(folder.path, 'home');
  const data = join(folder.path, 'data');
  const baseModel = tinyModelDirectory('qwen3');
  const server = startCommand(['serve', '--port', '0', '--data', data, '--json'], { home });
  await server.output(/listening/);
  const { url } = JSON.parse((await server.output(/\n/)).trim().split('\n')[0]!) as { url: string };
  const registry = (...args: string[]) => runCommand(['registry', ...args, '--url', url, '--json'], { home });

  const service = new ServiceClient({ baseUrl: url });
  const training = await service.createLoraTrainingClient({ baseModel, rank: 4, seed: 1 });
  await training.saveWeightsAndGetSamplingClient();
  await training.forwardBackward([sftDatum({ prompt: [5, 6], completion: [7, 8, 9] })], 'cross_entropy');
  await training.optimStep({ learningRate: 1e-2 });
  const { modelPackageArn: arn } = await training.saveWeightsForSampler({ description: 'counts', mergeWeights: true });
  await training.saveState();

  const id = 'sagemaker-default/2';
  expect((await registry('groups')).events).toMatchObject([{ type: 'group', name: 'sagemaker-default', versions: 3 }]);
  expect((await registry('list')).events).toMatchObject([
    { number: 3, kind: 'state' },
    { number: 2, kind: 'merged' },
  ]);
  expect((await registry('list', '--all', '--kind', 'sampler')).events).toMatchObject([{ number: 1 }]);
  expect((await registry('reject', id, '--note', 'too short')).code).toBe(0);
  expect((await registry('approve', arn, '--without-results', 'this is a test')).code).toBe(0);
  expect((await registry('tag', id, 'team=math', 'stage=trial')).code).toBe(0);
  expect((await registry('tag', id, '--remove', 'stage')).code).toBe(0);
  expect((await registry('metrics', id, 'eval/accuracy=0.5', 'eval/length=12', '--note', '20 problems')).code).toBe(0);
  // What an evaluation attached isn't written over by hand without a word; other figures are, with one.
  const results = ['eval/difference=0.5', 'eval/n=20'];
  expect((await registry('metrics', id, ...results)).code).toBe(0);
  expect((await registry('metrics', id, 'eval/n=600')).events.at(-1)).toMatchObject({
    error: {
      code: 'invalid_argument',
      details: {
        field: 'metrics eval/n',
        got: expect.stringMatching(/^20, of 20/),
        remedy: expect.stringContaining('--remove eval/n'),
      },
    },
  });
  expect((await registry('metrics', id, '--remove', 'eval/difference', 'eval/n')).code).toBe(0);
  expect((await registry('metrics', id, 'eval/length=12', '--note', '20 problems')).stderr).toBe('');
  expect((await registry('metrics', id, 'eval/accuracy=0.4')).stderr).toMatch(
    /^eval\/accuracy was 0\.5 before \(20.*: 20 problems\)\n$/,
  );
  expect((await registry('metrics', id, 'eval/accuracy=0.5', '--note', '20 problems')).code).toBe(0);
  expect((await registry('describe', id, 'counts up')).code).toBe(0);
  expect((await registry('keep', 'sagemaker-default/1')).events).toMatchObject([{ expiresAtMs: null }]);
  const shown = await runCommand(['registry', 'show', id, '--url', url], { home });
  expect(shown.stdout).toMatch(/counts up\n/);
  expect(shown.stdout).toMatch(
    /approval +Approved: approved with evaluation missing, regression missing, cost missing: this is a test\n +tags +team=math\n/,
  );
  expect(shown.stdout).toMatch(/data since +1 passes, 1 datums, 4 tokens, digest [0-9a-f]{16}…\n/);
  expect(shown.stdout).toMatch(/\d {2}20 problems\n +eval\/accuracy +0\.5\n/);

  const target = (name: string) => join(folder.path, name);
  const peft = await registry('download', id, target('peft'), '--part', 'adapter');
  expect(peft.events.at(-1)).toMatchObject({ type: 'download-end', version: arn });
  expect((await readdir(target('peft'))).sort()).toEqual([
    'README.md',
    'adapter_config.json',
    'adapter_model.safetensors',
  ]);
  expect(await readFile(join(target('peft'), 'README.md'), 'utf8')).toContain('| eval/accuracy | 0.5 | 20 problems |');
  expect((await registry('download', id, target('merged'), '--part', 'merged')).code).toBe(0);
  const sampleOf = async (model: { baseModel: string } | { modelPackageArn: string }, from: ConnectOptions) => {
    await using connection = await connect(from);
    const sampler = await connection.createSamplingClient(model);
    return (await sampler.sample([5, 6], { maxTokens: 8, temperature: 0 })).sequences[0]!.tokens;
  };
  const tuned = await sampleOf({ modelPackageArn: arn }, { url });
  expect(await sampleOf({ baseModel: target('merged') }, { dataDir: target('other') })).toEqual(tuned);
  expect((await registry('download', id, target('a.zip'), '--zip')).code).toBe(0);
  expect((await registry('download', id, target('b.zip'), '--zip')).code).toBe(0);
  expect((await readFile(target('a.zip'))).equals(await readFile(target('b.zip')))).toBe(true);

  // What is wrong is said, and leaves nothing behind.
  const refused = async (code: string, field: string, ...args: string[]) => {
    const end = await registry(...args);
    expect(end.code).toBe(1);
    expect(end.events.at(-1)).toMatchObject({ type: 'error', error: { code, details: { field } } });
  };
  const entries = await readdir(folder.path);
  await refused('invalid_argument', 'part', 'download', 'sagemaker-default/3', target('none'), '--part', 'merged');
  await refused('invalid_argument', 'target', 'download', id, target('peft'));
  await refused('unknown_version', 'version', 'show', 'sagemaker-default/9');
  const gone = await runCommand(['registry', 'show', 'sagemaker-default/9', '--url', url], { home });
  expect(gone.stderr).toContain(`sagemaker-default/9, which does not exist, in ${url}`);
  await refused('invalid_argument', 'version', 'show', 'nonsense');
  await refused('invalid_argument', 'metrics eval/x', 'metrics', id, 'eval/x=high');
  await refused('invalid_argument', 'tags', 'tag', id);
  const weights = await readFile(join(target('peft'), 'adapter_model.safetensors'));
  const hash = createHash('sha256').update(weights).digest('hex');
  const blob = join(data, 'blobs', 'default', hash.slice(0, 2), hash);
  await chmod(blob, 0o644);
  await writeFile(blob, Buffer.from(weights).fill(1, 500, 501));
  await refused('blob_damaged', `blob ${hash}`, 'download', id, target('damaged'));
  await refused('blob_damaged', `blob ${hash}`, 'download', id, target('damaged.zip'), '--zip');
  expect(await readdir(folder.path)).toEqual(entries);

  expect((await registry('delete', id)).events).toMatchObject([{ type: 'deleted', version: arn }]);
  expect((await registry('delete', id)).events).toMatchObject([{ type: 'gone', state: 'deleted' }]);
  await refused('unknown_version', 'version', 'approve', id);
  expect((await registry('list', '--ended')).events).toMatchObject([
    { number: 3 },
    { number: 2, state: 'deleted' },
    { number: 1 },
  ]);
  await service.close();
  server.interrupt();
  await server.end;
});
