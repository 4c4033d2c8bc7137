/** The programs of the guides, run as they are printed there. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { temporaryDirectory } from '@loopwright/testkit';
import type { CustomDatum } from 'loopwright';
import { expect, test } from 'vitest';
import { drawTo } from './own-gradient.js';

const run = promisify(execFile);
const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
const guide = read('../../docs/guides/custom-loss.md');
const renderers = read('../../docs/guides/renderers.md');
const block = (language: string, text: string): string => `\`\`\`${language}\n${text}\`\`\``;

/** Runs a program of this folder as a reader would. */
async function outputOf(name: string): Promise<string> {
  await using home = await temporaryDirectory();
  const env = { PATH: process.env.PATH ?? '', HOME: home.path, LOOPWRIGHT_HOME: home.path };
  const program = fileURLToPath(new URL(name, import.meta.url));
  const { stdout } = await run(process.execPath, ['--import', 'tsx', program], { env });
  return stdout;
}

test('the guide to renderers shows a program that prints what the guide says', async () => {
  expect(renderers).toContain(block('ts', read('renderers.ts')));
  const [, told] = /```\n(ok: [^`]*)```/.exec(renderers)!;
  // The answer is the bundled model's, right or not.
  const blank = (text: string): string => text.replaceAll(/^(ok: )?\d+(<\|im_end\|>)?$/gm, '$1…$2');
  expect(blank(await outputOf('renderers.ts'))).toBe(blank(told!));
});

test('the guide to sandboxes shows a program that prints what the guide says', async () => {
  const sandbox = read('../../docs/guides/sandbox.md');
  expect(sandbox).toContain(block('ts', read('sandbox.ts')));
  expect(sandbox).toContain(block('', await outputOf('sandbox.ts')));
});

test('the guide to losses of your own shows a program that prints what the guide says', async () => {
  expect(guide).toContain(block('ts', read('custom-loss.ts')));
  const stdout = await outputOf('custom-loss.ts');
  // Last digits are the machine's: the guide says one machine's.
  const numbers = (text: string): number[] => [...text.matchAll(/-?\d+\.\d+/g)].map(Number);
  const [, told] = /```\n(step 1:[^`]*)```/.exec(guide)!;
  expect(stdout.replaceAll(/-?\d+\.\d+/g, 'x')).toBe(told!.replaceAll(/-?\d+\.\d+/g, 'x'));
  numbers(told!).forEach((number, i) => {
    expect(numbers(stdout)[i]).toBeCloseTo(number, 1);
  });
});

test('the gradient that the guide gives by hand is that of its loss', () => {
  expect(guide).toContain(block('ts', read('own-gradient.ts')));
  const loss = drawTo(-1);
  const data: CustomDatum[] = []; // the loss looks at no datum
  const at = [[-0.5, -2], [-1.25]];
  const { gradients } = loss(at, data);
  const h = 1e-6;
  at.forEach((row, i) => {
    row.forEach((lp, j) => {
      const moved = (to: number) =>
        loss(
          at.map((r, a) => r.map((l, b) => (a === i && b === j ? to : l))),
          data,
        ).loss;
      expect(Number(gradients[i]![j])).toBeCloseTo((moved(lp + h) - moved(lp - h)) / (2 * h), 6);
    });
  });
});
