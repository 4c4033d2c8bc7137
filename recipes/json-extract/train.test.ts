import { createRandom } from 'loopwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Recipe, recipeOf } from '../../test/support/recipe.js';
import { careless, heldOut, train } from './points.js';

let recipe: Recipe;
beforeAll(async () => {
  recipe = await recipeOf(import.meta.url);
});
afterAll(() => recipe[Symbol.asyncDispose]());

test('its grader of components passes its gate, and takes the fields for correctness', async () => {
  const gate = (await recipe.graderTest()).events.at(-1)!;
  expect(gate).toMatchObject({ outcome: 'pass', cases: { labelled: 36 } });
  expect(gate.components).toMatchObject([
    { name: 'json_schema', role: 'form' },
    { name: 'json.x', role: 'correctness' },
    { name: 'json.y', role: 'correctness' },
    { name: 'json.z', role: 'correctness' },
  ]);
});

test('a step after a step of warm-up: judged before and after, kept in a run folder', async () => {
  const { stdout, run } = await recipe.train(['--max-steps', '1', '--warm-up-steps', '1']);
  expect(stdout).toMatch(
    /^base model: 0\.0 % right \(0 of n = 200, .*\nafter 1 steps of warm-up: .*\npreflight: no-go, /,
  );
  expect(stdout).toMatch(/\nafter 1 steps: .* json_schema \d+, json\.x \d+.*\nweights {2}arn:.*\nrun {6}/);
  expect(run.record).toMatchObject({ status: 'done', data: { heldOut: { rows: 200 } } });
});

test('no point that is held out is trained on', () => {
  const trained = new Set(train.map(({ answer }) => answer));
  expect(heldOut.filter(({ answer }) => trained.has(answer))).toEqual([]);
});

test('the clerk is careless in more rows than not', () => {
  const random = createRandom(1);
  const right = train.filter((point) => careless(point, random) === point.answer).length;
  expect(right / train.length).toBeCloseTo(0.45 * 0.7, 1);
});
