import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectGoesOn, type Recipe, recipeOf, tinySteps } from '../../test/support/recipe.js';

let recipe: Recipe;
beforeAll(async () => {
  recipe = await recipeOf(import.meta.url);
});
afterAll(() => recipe[Symbol.asyncDispose]());

const tiny = tinySteps(2);

test('two steps on the letters: the held-out loss falls, replies are judged before and after', async () => {
  const { stdout, run } = await recipe.train(tiny);
  expect(stdout).toMatch(/^to learn: 160 conversations, 0 longer .*\nheld out: 80 conversations, /);
  expect(stdout).toMatch(/\nafter 0 steps: .* of n = 80, .* in style\n/);
  expect(stdout).toMatch(/\nafter 2 steps: .* in style\nadapter {2}arn:/);
  const losses = [...stdout.matchAll(/^step \d\/2 {2}held-out loss (\S+) .* n 80$/gm)].map(([, loss]) => loss);
  expect(Number(losses[1])).toBeLessThan(Number(losses[0]));
  expect(run.record).toMatchObject({ status: 'done', seeds: { seed: 1 }, data: { train: { rows: 160 } } });
  expect(run.record.grader).toBeDefined();
  expect(run.steps.map(({ type, step }) => `${type} ${step}`)).toEqual([
    'validation 0',
    'held-out 0',
    'step-end 1',
    'step-end 2',
    'held-out 2',
    'validation 2',
  ]);
});

test('a run that is given more steps goes on, and ends with the numbers of one that was never stopped', async () => {
  await expectGoesOn(recipe);
});

test('other conversations are read from a file, of several turns too, and judged by their loss alone', async () => {
  await using folder = await temporaryDirectory();
  const file = join(folder.path, 'chats.jsonl');
  const rows = Array.from({ length: 40 }, (_, i) => ({
    messages: [
      { role: 'user', content: `${i}?` },
      { role: 'assistant', content: `${i}.` },
      { role: 'user', content: 'Again?' },
      { role: 'assistant', content: i === 7 ? 'long'.repeat(200) : `${i}, as I said.` },
    ],
  }));
  await writeFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const { stdout } = await recipe.train([...tiny, '--data', file]);
  const [, learnt, left, held, heldLeft] =
    /^to learn: (\d+) conversations, (\d) longer .*\nheld out: (\d+) conversations, (\d) longer /.exec(stdout)!;
  expect(Number(learnt) + Number(held)).toBe(39);
  expect(Number(left) + Number(heldLeft)).toBe(1);
  expect(stdout).toMatch(/\nstep 2\/2 {2}held-out loss /);
  expect(stdout).not.toMatch(/in style/);
});

test('its grader passes its gate', async () => {
  expect((await recipe.graderTest()).events.at(-1)).toMatchObject({ outcome: 'pass', cases: { labelled: 36 } });
});
