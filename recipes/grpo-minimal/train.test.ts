import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '@loopwright/testkit';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const recipe = fileURLToPath(new URL('train.ts', import.meta.url));

test('two steps on the bundled model: judged before and after, an adapter saved', { timeout: 180_000 }, async () => {
  await using home = await temporaryDirectory();
  const env = { PATH: process.env.PATH ?? '', HOME: home.path, LOOPWRIGHT_HOME: home.path };
  const { stdout } = await run(process.execPath, ['--import', 'tsx', recipe, '--steps', '2'], { env });
  expect(stdout).toMatch(/^before: \d+\.\d % right, n = 100, 95 % interval /);
  expect(stdout).toMatch(/\nstep 1\/2 {2}reward \d\.\d{3} .*\nstep 2\/2 /);
  expect(stdout).toMatch(/\nafter: .*\n/);
  expect(stdout).toMatch(/\nadapter arn:.*\nfiles {3}.*versions/);
});

test('a wrong number of steps is refused at once', async () => {
  const failing = run(process.execPath, ['--import', 'tsx', recipe, '--steps', 'many']);
  await expect(failing).rejects.toMatchObject({ code: 2, stderr: '--steps: expected a whole number, got many\n' });
});
