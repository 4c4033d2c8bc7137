import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Recipe, recipeOf } from '../../test/support/recipe.js';
import { configs } from './config.js';
import { problemSets, problemsOf } from './data.js';

let recipe: Recipe;
beforeAll(async () => {
  recipe = await recipeOf(import.meta.url);
});
afterAll(() => recipe[Symbol.asyncDispose]());

test('both stages run on the bundled model: the second goes on from what the first saved, dead groups are counted', async () => {
  const args = ['--model', 'loopwright-tiny', '--max-steps', '1', '--sft-steps', '2'];
  const { stdout, run } = await recipe.train(args);
  for (const when of ['as it comes', 'after stage 1', 'after stage 2'])
    expect(stdout).toMatch(new RegExp(`^${when}: \\d+\\.\\d % right \\(\\d+ of n = 40, 95 % interval `, 'm'));
  expect(stdout).toMatch(/^stage 1: 200 worked answers, 0 longer .*$/m);
  expect(stdout).toMatch(/^stage 1: saved arn:/m);
  expect(stdout).toMatch(/^stage 2: \d of 4 groups dead/m);
  expect(run.record).toMatchObject({ status: 'done', config: { sftSteps: 2, rl: { groupsPerStep: 4 } } });
  const types = run.steps.map(({ type, step }) => `${type.replace('skipped', 'end')} ${step}`);
  expect(types).toEqual(['base 0', 'validation 0', 'sft 1', 'step-end 1', 'validation 1', 'sft 2']);
});

test('to go on with a run is refused, and says why', async () => {
  await expect(recipe.train(['--resume', 'x'])).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/--resume: a run of gsm8k can't be gone on with: .* begin a new run/),
  });
});

test('the settings for a big model are those of its name', () => {
  expect(configs.big).toMatchObject({ rank: 32, alpha: 64, rl: { steps: 10, groupsPerStep: 40 } });
});

test('problems of a folder come in an order of the seed, with the files of GSM8K', async () => {
  await using folder = await temporaryDirectory();
  await mkdir(folder.path, { recursive: true });
  for (const part of ['train', 'test']) {
    const rows = Array.from({ length: 9 }, (_, i) => ({ question: `${part} ${i}?`, answer: `It is ${i}.\n#### ${i}` }));
    await writeFile(join(folder.path, `${part}.jsonl`), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  }
  const { test: rows } = await problemSets(folder.path);
  const asked = async (seed: number) =>
    (await problemsOf(rows, { count: 5, seed })).map(
      ({ question, answer }) => `${question} ${answer.split('\n').at(-1)}`,
    );
  const first = await asked(1);
  expect(first).toHaveLength(5);
  for (const each of first) expect(each).toMatch(/^test (\d)\? #### \1$/);
  expect(await asked(1)).toEqual(first);
  expect(await asked(2)).not.toEqual(first);
});

test('its grader passes its gate', async () => {
  expect((await recipe.graderTest()).events.at(-1)).toMatchObject({ outcome: 'pass', cases: { labelled: 32 } });
});
