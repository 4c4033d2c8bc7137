import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Recipe, recipeOf } from '../../test/support/recipe.js';

let recipe: Recipe;
beforeAll(async () => {
  recipe = await recipeOf(import.meta.url);
});
afterAll(() => recipe[Symbol.asyncDispose]());

test('two steps: judged before and after, kept in a run folder, an adapter saved', async () => {
  const { stdout, run } = await recipe.train(['--max-steps', '2']);
  expect(stdout).toMatch(/^after 0 steps: \d+\.\d % right \(\d+ of n = 500, 95 % interval /);
  expect(stdout).toMatch(/\nstep 1\/2 .*\nstep 2\/2 .*\nafter 2 steps: .*\nadapter {2}arn:.*\nrun {6}/);
  expect(run.record).toMatchObject({ status: 'done', seeds: { seed: 1 }, data: { train: { rows: 3000 } } });
  expect(run.steps.map(({ type, step }) => `${type} ${step}`)).toEqual([
    'validation 0',
    'step-end 1',
    'step-end 2',
    'validation 2',
  ]);
});

test('its grader passes its gate, and preflight says go', async () => {
  expect((await recipe.graderTest()).events.at(-1)).toMatchObject({ outcome: 'pass', cases: { labelled: 32 } });
  expect((await recipe.preflight(['--prompts', '20'])).events.at(-1)).toMatchObject({ outcome: 'go' });
});

test('an option that it does not have is refused at once', async () => {
  await expect(recipe.train(['--steps', '2'])).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--steps'),
  });
});

test('what ends it is told with its remedy, without a stack', async () => {
  await expect(recipe.train(['--model', 'none-such'])).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^error unknown_model: baseModel\n {2}expected .*\n {2}got {7}none-such\n {2}remedy .*\nLOOPWRIGHT_DEBUG=1 shows where it was raised\.\n$/,
    ),
  });
});
