import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '@loopwright/testkit';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const recipe = fileURLToPath(new URL('train.ts', import.meta.url));

test('two steps on the bundled model: pairs sampled, margins told, judged before and after', {
  timeout: 240_000,
}, async () => {
  await using home = await temporaryDirectory();
  const env = { PATH: process.env.PATH ?? '', HOME: home.path, LOOPWRIGHT_HOME: home.path };
  const { stdout } = await run(process.execPath, ['--import', 'tsx', recipe, '--steps', '2'], { env });
  expect(stdout).toMatch(/^\d+ pairs from 320 sums, \d+ held out\nbefore: \d+\.\d % right, n = 200, 95 % interval /);
  const margins = [...stdout.matchAll(/^step \d\/2 {2}loss \d\.\d{3} {2}margin (-?\d\.\d{3})$/gm)].map(([, m]) =>
    Number(m),
  );
  expect(margins[0]).toBeCloseTo(0, 2); // nothing is trained yet
  expect(margins[1]).toBeGreaterThan(0);
  expect(stdout).toMatch(/\nheld-out pairs: margin .*\nafter: .*\nadapter arn:/);
});

test('a wrong number of steps is refused at once', async () => {
  const failing = run(process.execPath, ['--import', 'tsx', recipe, '--steps', 'many']);
  await expect(failing).rejects.toMatchObject({ code: 2, stderr: '--steps: expected a whole number, got many\n' });
});
