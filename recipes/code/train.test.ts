import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { openDataset, testGrader } from 'loopwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Recipe, recipeOf } from '../../test/support/recipe.js';
import { codeProblems } from './problems.js';
import { sandbox, task } from './task.js';

let recipe: Recipe;
beforeAll(async () => {
  recipe = await recipeOf(import.meta.url);
});
afterAll(() => recipe[Symbol.asyncDispose]());

test('one step on the bundled model: episodes are judged before and after, dead groups are counted', async () => {
  const { stdout, run } = await recipe.train(['--model', 'loopwright-tiny', '--max-steps', '1']);
  expect(stdout).toMatch(/^\d+ problems to learn from, 0 with tests .*, \d+ held out\nafter 0 steps: .* % right \(/);
  expect(stdout).toMatch(/\nstep 1\/1 {2}reward -?\d\.\d{3} /);
  expect(stdout).toMatch(/\n\d of 4 groups dead: .*\nafter 1 steps: .*\nadapter {2}arn:/);
  expect(run.record).toMatchObject({ status: 'done', config: { maxStepsOffPolicy: 3, maxTurns: 2 } });
});

test('a run that is given more steps goes on after its newest checkpoint', async () => {
  const of = (steps: string): string[] => ['--model', 'loopwright-tiny', '--max-steps', steps];
  await recipe.train([...of('1'), '--run', recipe.at('stopped')]);
  const { stdout, stderr } = await recipe.train([...of('2'), '--resume', recipe.at('stopped')]);
  expect(stderr).toMatch(/ goes on after step 1, /);
  expect(stdout).not.toMatch(/^(?:after 0 steps|step 1\/)/m);
  expect(stdout).toMatch(/^step 2\/2 .*\n(?:guard\/.*\n)*\d of 4 groups dead: .*\nafter 2 steps: /m);
}, 600_000); // it took 188 s at a load of 9 on two cores

test('rows of DeepCoder are read in the forms of their tests, and those that can not be run are counted', async () => {
  await using folder = await temporaryDirectory();
  const file = join(folder.path, 'rows.jsonl');
  const tests = [
    [{ type: 'stdin_stdout', input: '1 2\n', output: '3\n' }],
    { inputs: ['1\n', '2\n'], outputs: ['2\n', '4\n'] },
    { fn_name: 'twice', inputs: [[1], [2]], outputs: [2, 4] },
    [{ type: 'function_call', fn_name: 'add', input: [1, 2], output: 3 }],
    [{ testtype: 'functional', input: '[1]', output: '2', metadata: { func_name: 'solve' } }],
    [],
  ];
  const rows = tests.map((each, i) => ({ problem: `Problem ${i}`, solutions: [], tests: JSON.stringify(each) }));
  await writeFile(file, [...rows, { problem: 'cut', tests: '[' }].map((row) => `${JSON.stringify(row)}\n`).join(''));
  const { problems, left } = await codeProblems(await openDataset(file));
  expect(left).toBe(3);
  expect(problems.map((problem) => problem.tests)).toEqual([
    { type: 'stdio', cases: [{ stdin: '1 2\n', stdout: '3\n' }] },
    {
      type: 'stdio',
      cases: [
        { stdin: '1\n', stdout: '2\n' },
        { stdin: '2\n', stdout: '4\n' },
      ],
    },
    {
      type: 'calls',
      cases: [
        { entry: 'twice', args: [1], expected: 2 },
        { entry: 'twice', args: [2], expected: 4 },
      ],
    },
    { type: 'calls', cases: [{ entry: 'add', args: [1, 2], expected: 3 }] },
  ]);
});

test('its grader passes its gate: programs that are right, checked or not, and nothing else', async () => {
  await using _ = sandbox;
  const { result, outcomes } = await testGrader(task, { make: false, repeats: 1, timeoutMs: 200_000, concurrency: 2 });
  expect(result).toMatchObject({ outcome: 'pass', confusion: { goodAccepted: 4, badRejected: 5, failed: 0 } });
  const rewardOf = (kind: string) => outcomes.find((each) => each.case.kind === kind)?.grade;
  expect(rewardOf('whole function')).toMatchObject({ reward: 1 });
  expect(rewardOf('does not parse')).toMatchObject({ reward: 0 });
  expect(rewardOf('without a block')).toMatchObject({ reward: -0.1 });
});
