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
const margins = (stdout: string): number[] =>
  [...stdout.matchAll(/held-out pairs: margin (-?\d+\.\d+), /g)].map(([, margin]) => Number(margin));

test('two steps on questions about sizes: held-out margins grow from 0, units are judged before and after', async () => {
  const { stdout, run } = await recipe.train(tiny);
  expect(stdout).toMatch(/^to learn: 106 pairs, 0 longer .*\nheld out: 54 pairs, /);
  const [before, after] = margins(stdout);
  expect(before).toBeCloseTo(0, 2);
  expect(after).toBeGreaterThan(0);
  expect(stdout.match(/: metric answers: .* of n = 54, .* without a unit/g)).toHaveLength(2);
  expect(run.record).toMatchObject({ status: 'done', seeds: { seed: 1 }, data: { train: { rows: 106 } } });
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

test('pairs are read from a file: whole conversations, of which what both begin with is the prompt', async () => {
  await using folder = await temporaryDirectory();
  const file = join(folder.path, 'pairs.jsonl');
  const rows = Array.from({ length: 40 }, (_, i) => {
    const asked = { role: 'user', content: `${i}?` };
    const [chosen, rejected] = ['!', '.'].map((end) => [asked, { role: 'assistant', content: `${i}${end}` }]);
    return { chosen, rejected };
  });
  await writeFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  const { stdout } = await recipe.train([...tiny, '--data', file]);
  const counts = [...stdout.matchAll(/^(?:to learn|held out): (\d+) pairs, /gm)].map(([, count]) => Number(count));
  expect(counts.reduce((sum, count) => sum + count)).toBe(40);
  expect(margins(stdout)[1]).toBeGreaterThan(0);
  expect(stdout).not.toMatch(/metric answers/);
});

test('its grader passes its gate: numbers may be wrong, units may not', async () => {
  const { events } = await recipe.graderTest();
  expect(events.at(-1)).toMatchObject({ outcome: 'pass', cases: { labelled: 24 } });
});
