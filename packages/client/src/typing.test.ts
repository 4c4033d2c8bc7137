/** What must compile and what must not: checked by tsc over `tsconfig.tests.json`, which takes all test files along. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const tsc = fileURLToPath(new URL('../../../node_modules/typescript/bin/tsc', import.meta.url));
const project = fileURLToPath(new URL('../tsconfig.tests.json', import.meta.url));

test('the calls of testing/calls.ts compile, and those marked as errors do not', { timeout: 120_000 }, async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, '-p', project]).catch(
    (error: { stdout: string }) => error,
  );
  expect(stdout).toBe('');
});
