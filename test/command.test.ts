/** The `loopwright` command from outside: output, exit codes, Ctrl-C. */
import { readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { ServiceClient } from 'loopwright';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCommand, startCommand } from './support/command.js';
import { makeTinyModel } from './support/tiny-model.js';

let folder: TemporaryDirectory;
let home: string;

beforeEach(async () => {
  folder = await temporaryDirectory();
  home = join(folder.path, 'home');
});

afterEach(() => folder[Symbol.asyncDispose]());

/** Listens on a port that was free. */
async function listenSomewhere(): Promise<{ port: number; close: () => Promise<void> }> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as { port: number }; // true: it listens on a port
  return { port, close: () => new Promise<void>((done) => server.close(() => done())) };
}

test('the help names every command, exit code and variable', async () => {
  const { code, stdout } = await runCommand(['--help'], { home });
  expect(code).toBe(0);
  for (const name of [
    'demo',
    'serve',
    'new',
    'models',
    'export',
    'sessions',
    'usage',
    'grader',
    'runs',
    'report',
    'samples',
    'eval',
    'preflight',
    'registry',
    'templates',
    'replay',
    'diff',
    'doctor',
  ])
    expect(stdout).toMatch(`\n  ${name} `);
  expect(stdout).toContain('Exit codes: 0 done, 1 failed, 2 wrong command line, 130 interrupted.');
  for (const name of ['URL', 'API_KEY', 'HOME', 'MODELS', 'DEVICE', 'DEBUG'])
    expect(stdout).toContain(`LOOPWRIGHT_${name}`);
});

test.each([
  [['frobnicate'], /unknown command 'frobnicate'/],
  [['demo', '--steps', '0'], /'0' is invalid. Expected a whole number from 1 to 10000/],
  [['serve', '--port', '99999'], /whole number from 0 to 65535/],
  [['serve', '--max-memory', '6'], /Expected a size in MB, GB, MiB or GiB/],
  [['serve', '--swap-after', 'never'], /whole number from 0 to 10000/],
  [['serve', '--device', 'gpu'], /Allowed choices are cpu, cuda, webgpu, directml, coreml/],
  [['serve', '--sampler-precision', 'int4'], /Allowed choices are float32, int8/],
  [['serve', '--model', 'no-equals-sign'], /Expected id=directory/],
  [['serve', '--modle', 'a=b'], /Did you mean --model/],
  [['new', 'a', 'b'], /too many arguments/],
])('a wrong command line (%j) exits with 2 and says what is expected', async (args, message) => {
  const { code, stdout, stderr } = await runCommand(args, { home });
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
  expect(stdout).toBe('');
});

test.skipIf(process.platform === 'darwin')('a device that is not there is refused before anything starts', async () => {
  const args = ['serve', '--port', '0', '--device', 'coreml', '--data', join(folder.path, 'no-device')];
  const { code, stderr } = await runCommand(args, { home });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^error device_unavailable: device\n {2}expected {2}coreml, which needs darwin arm64.+\n/);
  expect(stderr).toMatch(/remedy {4}.*leave the device out to compute on the processor\n$/);
  expect(await readdir(folder.path)).not.toContain('no-device');
  const demo = await runCommand(['demo'], { home, env: { LOOPWRIGHT_DEVICE: 'coreml' } });
  expect(demo.stderr).toMatch(/^error device_unavailable: device\n/);
  const unknown = await runCommand(['demo'], { home, env: { LOOPWRIGHT_DEVICE: 'gpu' } });
  expect(unknown.stderr).toMatch(/^error invalid_argument: device\n {2}expected {2}one of cpu, cuda/);
});

test('an error shows code, field, expected, got and remedy, and no stack unless one asks for it', async () => {
  const { code, stderr } = await runCommand(['new', 'Not-A-Name'], { home });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^error invalid_argument: name\n {2}expected {2}.+\n {2}got {7}.+\n {2}remedy {4}.+\n$/);
  const debug = await runCommand(['new', 'Not-A-Name'], { home, env: { LOOPWRIGHT_DEBUG: '1' } });
  expect(debug.stderr).toMatch(/\n {4}at /);
  const json = await runCommand(['new', 'Not-A-Name', '--json'], { home });
  expect(json.stderr).toBe('');
  expect(json.events).toMatchObject([
    { type: 'error', error: { code: 'invalid_argument', details: { field: 'name' } } },
  ]);
});

test('new without a name and without a terminal to ask on says how to call it', async () => {
  const { code, stderr } = await runCommand(['new'], { home });
  expect(code).toBe(1);
  expect(stderr).toContain('loopwright new my-task');
});

test('new writes a whole task, and never into a folder that holds something', async () => {
  const first = await runCommand(['new', 'my-task', '--json'], { home, cwd: folder.path });
  expect(first.code).toBe(0);
  expect((await readdir(join(folder.path, 'my-task'))).sort()).toEqual([
    '.gitignore',
    '.npmrc',
    'README.md',
    'environment.ts',
    'grader.test.ts',
    'grader.ts',
    'package.json',
    'task.ts',
    'train.ts',
    'tsconfig.json',
  ]);
  const second = await runCommand(['new', 'my-task'], { home, cwd: folder.path });
  expect(second.code).toBe(1);
  expect(second.stderr).toMatch(/my-task, which holds 10 files/);
});

test('serve tells where it listens, sessions are listed, stopped and deleted, and Ctrl-C ends it with 130', async () => {
  await makeTinyModel(join(home, 'models', 'tiny'));
  const server = startCommand(['serve', '--port', '0', '--json'], { home });
  await server.output(/listening/);
  const [listening] = JSON.parse(`[${(await server.output(/\n/)).trim()}]`) as [{ url: string; models: string[] }];
  expect(listening.models).toEqual(['loopwright-tiny', 'tiny']);
  const address = ['--url', listening.url, '--json'];

  const service = new ServiceClient({ baseUrl: listening.url });
  await service.createLoraTrainingClient({ baseModel: 'tiny', rank: 2, name: 'mine' });
  expect((await runCommand(['models', ...address], { home })).events).toContainEqual({ type: 'model', id: 'tiny' });
  const listed = await runCommand(['sessions', 'list', ...address], { home });
  expect(listed.events).toMatchObject([{ type: 'session', name: 'mine', status: 'Running' }]);
  const mine = await service.createLoraTrainingClient({ baseModel: 'tiny', rank: 2, name: 'worked' });
  await mine.forward(
    [{ modelInput: [5, 6, 7], lossFnInputs: { targetTokens: [6, 7, 8], weights: [0, 1, 1] } }],
    'cross_entropy',
  );
  const prices = join(folder.path, 'prices.json');
  await writeFile(prices, '{"currency": "EUR", "models": {"*": {"prefill": 1, "sample": 1, "training": 2}}}');
  const used = await runCommand(['usage', '--prices', prices, ...address], { home });
  expect(used.events).toMatchObject([
    { type: 'usage', session: { name: 'worked' }, trainingTokens: 3, cost: 6e-6, currency: 'EUR' },
    { type: 'total', operations: 1, trainingTokens: 3, cost: 6e-6, unpriced: [] },
  ]);
  const table = await runCommand(['usage', '--by', 'model', '--prices', prices, ...address.slice(0, 2)], { home });
  expect(table.stdout).toMatch(/model +operations +prefill +sample +training +EUR +last\ntiny +1 +0 +0 +3 +0\.000006 /);
  await service.deleteSession('worked', { stopIfActive: true });
  const refused = await runCommand(['sessions', 'delete', 'mine', ...address], { home });
  expect(refused).toMatchObject({ code: 1, events: [{ error: { code: 'invalid_transition' } }] });
  expect((await runCommand(['sessions', 'stop', 'mine', ...address], { home })).code).toBe(0);
  expect((await runCommand(['sessions', 'delete', 'mine', '--stop', ...address], { home })).code).toBe(0);
  expect((await runCommand(['sessions', ...address], { home })).events).toEqual([]);
  const unknown = await runCommand(['sessions', 'stop', 'nobody', ...address], { home });
  expect(unknown).toMatchObject({ code: 1, events: [{ error: { code: 'unknown_session' } }] });

  server.interrupt();
  const end = await server.end;
  expect(end.code).toBe(130);
  expect(end.stderr).toContain('sessions are kept');
});

test('a second server on a data directory is refused, and so is a port in use', async () => {
  const first = startCommand(['serve', '--port', '0'], { home });
  await first.output(/listens on/);
  const second = await runCommand(['serve', '--port', '0', '--json'], { home });
  expect(second).toMatchObject({
    code: 1,
    events: [
      {
        error: {
          code: 'data_dir_in_use',
          details: {
            field: 'dataDir',
            expected: expect.any(String),
            got: expect.any(String),
            remedy: expect.any(String),
          },
        },
      },
    ],
  });
  first.interrupt();
  await first.end;

  const { port, close } = await listenSomewhere();
  const third = await runCommand(['serve', '--port', String(port), '--json'], { home });
  await close();
  expect(third).toMatchObject({
    code: 1,
    events: [
      {
        error: {
          code: 'port_in_use',
          details: {
            field: 'port',
            expected: 'a free port',
            got: `${port} on 127.0.0.1, which another program listens on`,
            remedy: expect.any(String),
          },
        },
      },
    ],
  });
});

test.each(['models', 'sessions'])('%s says soon that a server cannot be reached, and what to check', async (name) => {
  const { port, close } = await listenSomewhere();
  await close();
  const start = performance.now();
  const { code, stderr } = await runCommand([name, '--url', `http://127.0.0.1:${port}`], { home });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^error connection_lost: baseUrl\n/);
  expect(stderr).toContain(`got       nothing at http://127.0.0.1:${port}`);
  expect(stderr).toContain('remedy    check that it runs and that the address is right');
  expect(performance.now() - start).toBeLessThan(10_000); // 3 s, and the start of a process on a busy machine
});

test('serve does not listen to the network without a key', async () => {
  const { code, stderr } = await runCommand(['serve', '--host', '0.0.0.0', '--port', '0'], { home });
  expect(code).toBe(1);
  expect(stderr).toMatch(/error invalid_argument: host/);
});

test('doctor looks at everything, and a data directory that cannot be written is missing, with a remedy', async () => {
  const fine = await runCommand(['doctor', '--port', '0', '--json'], { home });
  expect(fine.events.map(({ name }) => name)).toEqual([
    'Node.js',
    'host',
    'cores',
    'memory',
    'data directory',
    'disk',
    'runtime',
    'devices',
    'bundled model',
    'port',
    'LOOPWRIGHT_URL',
  ]);
  const memory = fine.events.find(({ name }) => name === 'memory');
  expect(memory).toMatchObject({
    found: expect.stringMatching(/^[\d.]+ GB, of which an engine uses [\d.]+ GB at most$/),
  });
  for (const { status, remedy } of fine.events) if (status !== 'ok') expect(remedy).toEqual(expect.any(String));
  expect(fine.events.find(({ name }) => name === 'runtime')).toMatchObject({
    found: expect.stringContaining('GFLOP/s'),
  });

  expect(fine.events.find(({ name }) => name === 'devices')).toMatchObject({ found: expect.stringMatching(/^cpu/) });

  const file = join(folder.path, 'file', 'data');
  const env = { LOOPWRIGHT_URL: 'http://127.0.0.1:9' };
  const broken = await runCommand(['doctor', '--data', `/dev/null${file}`, '--json'], { home, env });
  expect(broken.code).toBe(1);
  const missing = broken.events.filter(({ status }) => status === 'missing').map(({ name }) => name);
  expect(missing).toEqual(expect.arrayContaining(['data directory', 'LOOPWRIGHT_URL']));
});

test('saved versions are listed with their files, those of a directory in use are said to be left out', async () => {
  await makeTinyModel(join(home, 'models', 'tiny'));
  const server = startCommand(['serve', '--port', '0', '--json'], { home });
  const { url } = JSON.parse(await server.output(/\n/)) as { url: string };
  const service = new ServiceClient({ baseUrl: url });
  const training = await service.createLoraTrainingClient({ baseModel: 'tiny', rank: 2 });
  await training.saveWeightsForSampler({ description: 'my adapter' });
  await training.saveWeightsForSampler();
  await service.close();
  const busy = await runCommand(['models', '--saved'], { home });
  expect(busy).toMatchObject({ code: 0, stderr: expect.stringContaining('is in use') });
  server.interrupt();
  await server.end;
  const { stdout } = await runCommand(['models', '--saved'], { home });
  expect(stdout).toMatch(/my adapter {2}weights/);
  expect(stdout).toContain(join(home, 'data', 'versions'));
  expect(stdout).toContain('And 1 without a description');
});
