import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '@loopwright/testkit';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const recipe = fileURLToPath(new URL('train.ts', import.meta.url));

test('rows are learnt: the held-out loss falls, rows that are too long are counted', async () => {
  await using home = await temporaryDirectory();
  const data = join(home.path, 'rows.jsonl');
  const rows = Array.from({ length: 44 }, (_, i) => ({
    question: `A box holds ${i + 2} pens. How many pens do two boxes hold?`,
    answer: `Two boxes hold 2 * ${i + 2} pens.\n#### ${2 * (i + 2)}`,
  }));
  rows[40] = { question: 'long'.repeat(300), answer: '1' };
  await writeFile(data, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const args = ['--import', 'tsx', recipe, '--data', data, '--rows', '40', '--held-out', '4'];
  const env = { PATH: process.env.PATH ?? '', HOME: home.path, LOOPWRIGHT_HOME: home.path };
  const { stdout } = await run(process.execPath, args, { env });
  expect(stdout).toMatch(/^39 rows to learn, 4 held out, 1 longer than 512 tokens left out\n/);
  const [before, after] = [...stdout.matchAll(/held-out loss (\d+\.\d+)/g)].map(([, loss]) => Number(loss));
  expect(after).toBeLessThan(before!);
  expect(stdout).toMatch(/\nadapter arn:.*\nfiles {3}.*versions/);
});

test('a missing file name is refused at once', async () => {
  await expect(run(process.execPath, ['--import', 'tsx', recipe])).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--data: expected a JSONL file'),
  });
});
