import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { readRun, type StoredRun } from 'loopwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Recipe, recipeOf } from '../../test/support/recipe.js';
import { configs } from './config.js';
import { problemSets, problemsOf } from './data.js';

let recipe: Recipe;
beforeAll(async () => {
  recipe = await recipeOf(import.meta.url);
});
afterAll(() => recipe[Symbol.asyncDispose]());

const few = ['--model', 'loopwright-tiny', '--sft-steps', '2'];
const typesOf = ({ steps }: StoredRun) => steps.map(({ type, step }) => `${type.replace('skipped', 'end')} ${step}`);

test('both stages run on the bundled model: the second goes on from what the first saved, dead groups are counted', async () => {
  const { stdout, run } = await recipe.train([...few, '--max-steps', '1']);
  for (const when of ['as it comes', 'after stage 1', 'after stage 2'])
    expect(stdout).toMatch(new RegExp(`^${when}: \\d+\\.\\d % right \\(\\d+ of n = 40, 95 % interval `, 'm'));
  expect(stdout).toMatch(/^stage 1: 200 worked answers, 0 longer .*$/m);
  expect(stdout).toMatch(/^stage 2: \d of 4 groups dead/m);
  const learnt = /^stage 1: saved (arn:.*)$/m.exec(stdout)?.[1];
  const first = await readRun(`${run.folder}-sft`);
  expect(first.record).toMatchObject({ status: 'done', config: { stage: 'sft', steps: 2, batchSize: 8 } });
  expect(typesOf(first)).toEqual(['validation 0', 'step-end 1', 'step-end 2', 'validation 2']);
  expect(run.record).toMatchObject({ status: 'done', config: { stage: 'rl', from: learnt, groupsPerStep: 4 } });
  expect(typesOf(run)).toEqual(['validation 0', 'step-end 1', 'validation 1']);
});

test('either stage is gone on with, and the second begins where the first was done', async () => {
  await recipe.train([...few, '--max-steps', '1', '--run', recipe.at('a')]);
  await rm(recipe.at('a'), { recursive: true }); // as if it had been killed between the two
  const again = ['--resume', recipe.at('a-sft'), '--run', recipe.at('a')];
  const between = await recipe.train([...few, '--max-steps', '1', ...again]);
  expect(between.stdout).not.toMatch(/^(?:as it comes|stage 1)/m);
  const more = [...few, '--max-steps', '2', '--resume', recipe.at('a'), '--run', recipe.at('b')];
  const { stdout, stderr } = await recipe.train(more);
  expect(stderr).toMatch(/a goes on after step 1, /);
  expect(stdout).not.toMatch(/^(?:as it comes|after stage 1|stage 1)/m);
  const types = ['validation 0', 'step-end 1', 'step-end 2', 'validation 2']; // the middle one was the last of the shorter run
  expect(typesOf(await readRun(recipe.at('a')))).toEqual(types);
  const longer = ['--model', 'loopwright-tiny', '--sft-steps', '3', '--max-steps', '1', '--run', recipe.at('c')];
  const first = await recipe.train([...longer, '--resume', recipe.at('a-sft')]);
  expect(first.stderr).toMatch(/a-sft goes on after step 2, /);
  expect(first.stdout).toMatch(/^after stage 1: /m);
  expect((await readRun(recipe.at('c'))).record).toMatchObject({ status: 'done', config: { stage: 'rl' } });
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
