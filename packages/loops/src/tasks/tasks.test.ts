import { describe, expect, it } from 'vitest';
import { datasetOf } from '../data/dataset.js';
import { textSource } from '../data/jsonl-source.js';
import type { Problem } from '../environments/environment.js';
import { copyEnvironment, copyProblem } from '../testing/bandit.js';
import { talk } from '../testing/talk.js';
import { defineTask } from './define-task.js';
import { readProblems } from './read-problems.js';
import { resolveSettings } from './settings.js';
import type { Task } from './task.js';

const problems = [copyProblem(1), copyProblem(2)];
const whole: Task = {
  name: 'copy',
  environment: copyEnvironment,
  train: problems,
  heldOut: [copyProblem(3)],
  cases: [{ problem: copyProblem(1), label: 'good', completion: '1' }],
  model: 'loopwright-tiny',
  settings: { groupSize: 4 },
};

describe('defineTask', () => {
  it('gives back what it was given', () => {
    expect(defineTask(whole)).toBe(whole);
    expect(defineTask({ name: 'small', environment: copyEnvironment })).toEqual({
      name: 'small',
      environment: copyEnvironment,
    });
  });

  it.each([
    ['task.name', { name: ' ' }],
    ['task.name', { name: 'a\u001bb' }],
    ['task.environment', { environment: null }],
    ['task.environment', { environment: { name: 'x', draw: () => 1 } }],
    ['task.environment', { environment: { ...copyEnvironment, begin: () => 1 } }],
    ['task.environment.draw', { environment: { name: 'x', grade: () => 1 } }],
    ['task.train', { train: [] }],
    ['task.train', { train: 'file.jsonl' }],
    ['task.train', { train: (async function* () {})() }],
    ['task.train[1].id', { train: [copyProblem(1), copyProblem(1)] }],
    ['task.train[0].answer', { train: [{ id: 'a', question: 'b' }] }],
    ['task.heldOut[0].id', { heldOut: [{ id: 7, question: 'b', answer: 'c' }] }],
    ['task.cases', { cases: {} }],
    ['task.cases[0].label', { cases: [{ problem: copyProblem(1), label: 'fine', completion: '1' }] }],
    ['task.cases[0].completion', { cases: [{ problem: copyProblem(1), label: 'good', completion: [{ text: '1' }] }] }],
    ['task.badFromGood', { badFromGood: ['comma'] }],
    ['task.badFromGood.without', { badFromGood: { without: ['words'] } }],
    ['task.model', { model: '' }],
    ['task.settings.maxTokens', { settings: { maxTokens: 0 } }],
    ['task.settings.groupSize', { settings: { groupSize: 1 } }],
    ['task.settings.maxToken', { settings: { maxToken: 8 } }],
    ['task.problems', { problems: [] }],
  ])('refuses a wrong %s by its name', (field, wrong) => {
    const task = { ...whole, ...wrong } as unknown as Task; // not true: that is what is tested
    expect(() => defineTask(task)).toThrow(
      expect.objectContaining({ code: 'invalid_argument', details: expect.objectContaining({ field }) }),
    );
  });

  it('takes labelled turns for episodes, and refuses broken ones', () => {
    const environment = talk([]) as unknown as Task['environment']; // true: talk looks at no problem
    const caseOf = (completion: unknown) =>
      ({ name: 'e', environment, cases: [{ problem: copyProblem(1), label: 'bad', completion }] }) as Task;
    expect(() => defineTask(caseOf([{ text: '', toolCalls: [{ name: 'f', arguments: {} }] }]))).not.toThrow();
    expect(() => defineTask(caseOf([]))).toThrow('task.cases[0].completion');
    expect(() => defineTask(caseOf([{ text: '', toolCalls: [{ name: 'f', arguments: [] }] }]))).toThrow('arguments');
  });
});

describe('the problems of a task', () => {
  it('come from lists, data sets, and functions that make generators', async () => {
    async function* generated(): AsyncGenerator<Problem> {
      yield* problems;
    }
    const rows = problems.map((problem) => JSON.stringify(problem)).join('\n');
    const data = datasetOf([textSource(rows, { file: 'x.jsonl' })]).as('rl_prompt');
    async function* ofRows(): AsyncGenerator<Problem> {
      for await (const { id, prompt, answer } of data) yield { id, question: String(prompt), answer };
    }
    expect(await readProblems(problems)).toEqual(problems);
    expect(await readProblems(generated)).toEqual(problems);
    expect(await readProblems(() => problems)).toEqual(problems);
    expect(await readProblems(ofRows)).toMatchObject(problems.map(({ question, answer }) => ({ question, answer })));
  });

  it('are refused where there are none, or two of an id', async () => {
    await expect(readProblems(() => [], { field: 'train' })).rejects.toThrow('train');
    await expect(readProblems(() => [problems[0]!, problems[0]!], { field: 'train' })).rejects.toThrow('train[1].id');
  });
});

it('settings have the defaults of runGrpo', () => {
  expect(resolveSettings({ maxTokens: 8 })).toMatchObject({ groupSize: 8, groupsPerStep: 8, maxTokens: 8, steps: 100 });
});
