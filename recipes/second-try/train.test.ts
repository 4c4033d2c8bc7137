import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '@loopwright/testkit';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const recipe = fileURLToPath(new URL('train.ts', import.meta.url));

test('two steps on the bundled model: what is trained is what was sampled, in both turns', {
  timeout: 180_000,
}, async () => {
  await using home = await temporaryDirectory();
  const env = { PATH: process.env.PATH ?? '', HOME: home.path, LOOPWRIGHT_HOME: home.path };
  const { stdout } = await run(process.execPath, ['--import', 'tsx', recipe, '--steps', '2'], { env });
  expect(stdout).toMatch(/^before: \d+ of 100 right at once, \d+ at the second try\n/);
  const ratios = [...stdout.matchAll(/^step \d\/2 {2}reward \d\.\d{3} {2}turns \d\.\d{3} {2}ratio (\S+) to (\S+)$/gm)];
  expect(ratios).toHaveLength(2);
  for (const ratio of ratios.flatMap(([, min, max]) => [min, max]))
    expect(Math.abs(Number(ratio) - 1)).toBeLessThan(1e-4);
  expect(stdout).toMatch(/\nafter: .*\nadapter arn:/);
});

test('the guide shows this environment and this loop', () => {
  const guide = readFileSync(new URL('../../docs/guides/environments.md', import.meta.url), 'utf8');
  const environment = readFileSync(new URL('environment.ts', import.meta.url), 'utf8');
  expect(guide).toContain(`\`\`\`ts\n${environment}\`\`\``);
  const [, loop] = /```ts\n(const turns = [^`]*)```/.exec(guide)!;
  const train = readFileSync(recipe, 'utf8');
  for (const line of loop!.trim().split('\n')) expect(train).toContain(`\n${line}\n`);
});
