/** What `loopwright new` writes runs as it stands: its test, its types and its loop. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from './support/command.js';
import { makeTinyModel } from './support/tiny-model.js';

const run = promisify(execFile);
const root = fileURLToPath(new URL('..', import.meta.url));
const binary = (name: string) => join(root, 'node_modules', '.bin', name);

let parent: string;
let task: string;
let home: string;

beforeAll(async () => {
  // Below the repository, where the packages are found as if they had been installed.
  await mkdir(join(root, 'tmp'), { recursive: true });
  parent = await mkdtemp(join(root, 'tmp', 'new-task-'));
  home = join(parent, 'home');
  task = join(parent, 'my-task');
  const { code, stderr } = await runCommand(['new', 'my-task'], { home, cwd: parent });
  expect(stderr).toBe('');
  expect(code).toBe(0);
});

afterAll(() => rm(parent, { recursive: true, force: true }));

test('its types are right and its test passes', async () => {
  await run(binary('tsc'), [], { cwd: task });
  const config = join(parent, 'vitest.config.ts'); // or the repository's own would be found
  await writeFile(config, 'export default {};\n');
  const env = { PATH: process.env.PATH ?? '', HOME: home, NO_COLOR: '1' };
  const { stdout } = await run(binary('vitest'), ['run', '--root', task, '--config', config], { cwd: task, env });
  expect(stdout).toMatch(/Tests {2}2 passed/);
});

test('its loop runs to the end and says where the adapter is', async () => {
  await makeTinyModel(join(home, 'models', 'tiny'));
  const env = { PATH: process.env.PATH ?? '', HOME: home, LOOPWRIGHT_HOME: home, STEPS: '2', BASE_MODEL: 'tiny' };
  const { stdout } = await run(process.execPath, ['--import', 'tsx', 'train.ts'], { cwd: task, env });
  expect(stdout).toMatch(/step 1\/2 {2}reward \d\.\d{3} .*\nstep 2\/2 .*\nadapter arn:.*\nfiles {3}.*versions/);
});
