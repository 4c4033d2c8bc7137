import { createRandom } from 'loopwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Recipe, recipeOf } from '../../test/support/recipe.js';
import { heldOut, randomPlay, train } from './environment.js';

let recipe: Recipe;
beforeAll(async () => {
  recipe = await recipeOf(import.meta.url);
});
afterAll(() => recipe[Symbol.asyncDispose]());

test('a step after a step of warm-up: episodes judged before and after, kept in a run folder', async () => {
  const { stdout, run } = await recipe.train(['--max-steps', '1', '--warm-up-steps', '1']);
  expect(stdout).toMatch(/^base model: .* % right \(\d+ of n = 200, .* ruled out\nafter 1 steps of warm-up: /);
  expect(stdout).toMatch(/\nafter 1 steps: .*\nweights {2}arn:.*\nrun {6}/);
  expect(run.record).toMatchObject({ status: 'done', data: { heldOut: { rows: 200 } } });
});

test('its grader passes its gate', async () => {
  expect((await recipe.graderTest()).events.at(-1)).toMatchObject({ outcome: 'pass', cases: { labelled: 80 } });
});

test('the random player guesses only what is left, and no game of training begins with a held-out range', () => {
  const random = createRandom(1);
  for (const game of train) {
    const messages = randomPlay(game, random);
    for (const [i, { role, content }] of messages.entries()) {
      if (role !== 'assistant') continue;
      const [low, high] = String(messages[i - 1]!.content)
        .replace(/^\w+ /, '')
        .split('-')
        .map(Number);
      expect(Number(content)).toBeGreaterThanOrEqual(low!);
      expect(Number(content)).toBeLessThanOrEqual(high!);
    }
  }
  const questions = new Set(train.map(({ question }) => question));
  expect(heldOut.filter(({ question }) => questions.has(question))).toEqual([]);
});
