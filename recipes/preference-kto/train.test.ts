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
const rewards = (stdout: string) =>
  [...stdout.matchAll(/reward of the liked (\S+), of others (\S+), /g)].map(([, liked, others]) => ({
    liked: Number(liked),
    others: Number(others),
  }));

test('two steps on thumbs: what is liked gains on what is not, answers are judged before and after', async () => {
  const { stdout, run } = await recipe.train(tiny);
  expect(stdout).toMatch(/^to learn: 400 answers, \d+ liked, 0 longer .*\nheld out: 100 answers, \d+ liked, /);
  const [before, after] = rewards(stdout);
  expect(before?.liked).toBeCloseTo(0, 2);
  expect(after!.liked).toBeGreaterThan(after!.others);
  expect(stdout.match(/: answers: .* of n = 100, .* a yes or no alone/g)).toHaveLength(2);
  expect(run.record).toMatchObject({ status: 'done', seeds: { seed: 1 }, data: { train: { rows: 400 } } });
  expect(run.record.grader).toBeDefined();
  expect(run.steps.map(({ type, step }) => `${type} ${step}`)).toEqual([
    'held-out 0',
    'validation 0',
    'step-end 1',
    'step-end 2',
    'held-out 2',
    'validation 2',
  ]);
});

test('a run that is given more steps goes on, and ends with the numbers of one that was never stopped', async () => {
  await expectGoesOn(recipe);
});

test('thumbs are read from a file, and nothing else is judged', async () => {
  await using folder = await temporaryDirectory();
  const file = join(folder.path, 'thumbs.jsonl');
  const rows = Array.from({ length: 60 }, (_, i) => {
    const label = i % 3 !== 0;
    return { prompt: [{ role: 'user', content: `${i}?` }], completion: label ? `${i}!` : 'no.', label };
  });
  await writeFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const { stdout } = await recipe.train([...tiny, '--data', file]);
  const counts = [...stdout.matchAll(/^(?:to learn|held out): (\d+) answers, /gm)].map(([, count]) => Number(count));
  expect(counts.reduce((sum, count) => sum + count)).toBe(60);
  expect(rewards(stdout)).toHaveLength(2);
  expect(stdout).not.toMatch(/yes or no alone/);
});

test('its grader passes its gate', async () => {
  expect((await recipe.graderTest()).events.at(-1)).toMatchObject({ outcome: 'pass', cases: { labelled: 32 } });
});
