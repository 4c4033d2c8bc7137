/** The listing of the README compiles (it is part of the type check) and runs as it stands. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '@loopwright/testkit';
import { connect } from 'loopwright';
import { expect, test } from 'vitest';

const listing = fileURLToPath(new URL('listing.ts', import.meta.url));
const run = promisify(execFile);

test('the listing is the one in the README, to the letter', async () => {
  const readme = await readFile(fileURLToPath(new URL('../../README.md', import.meta.url)), 'utf8');
  const [, printed] = (await readFile(listing, 'utf8')).split('// ---\n');
  expect(readme).toContain(`\`\`\`ts\n${printed}\`\`\``);
});

test('the listing trains thirty steps and ends with a state from which one can go on', {
  timeout: 300_000,
}, async () => {
  await using folder = await temporaryDirectory();
  const home = join(folder.path, 'home');
  const { stdout } = await run(process.execPath, ['--import', 'tsx', listing], {
    env: { PATH: process.env.PATH ?? '', HOME: home, LOOPWRIGHT_HOME: home },
  });
  const modelPackageArn = stdout.trim();
  expect(modelPackageArn).toMatch(/^arn:.*:model-package\/.*\/31$/); // 30 samplers and the state
  await using service = await connect({ dataDir: join(home, 'data') });
  expect((await service.listModelPackages({ kind: 'state' }))[0]).toMatchObject({
    modelPackageArn,
    description: 'adder',
  });
  const resumed = await service.createTrainingClientFromStateWithOptimizer({ modelPackageArn });
  const step = resumed.optimStep({ learningRate: 1e-6 });
  expect((await step).metrics['optim/step']).toBe(31);
});
