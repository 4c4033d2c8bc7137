import type { SamplingClient } from '@loopwright/client';
import { LoopwrightError } from '@loopwright/protocol';
import { expect, test } from 'vitest';
import { type ModelSource, startModel } from './models.js';

/** Of each version its base model; others are unknown, and `broken` can't be asked. */
const versions: Readonly<Record<string, string>> = {
  ...{ 'math/9': 'small', 'math/11': 'small', 'math/12': 'small' },
  ...{ 'math/10': 'large', 'arn:x': 'large' },
};
/** It came from math/9. */
const judged = { id: 'id of math/12', baseModel: 'small' };

const source: ModelSource = {
  registry: {
    get: async (version) => {
      if (version === 'broken/1') throw new LoopwrightError({ code: 'unauthenticated', message: 'no key' });
      const baseModel = versions[version];
      if (baseModel === undefined) throw new LoopwrightError({ code: 'unknown_version', message: 'none' });
      return { id: `id of ${version}`, baseModel, groupName: 'math', number: Number(version.split('/')[1] ?? 0) };
    },
    lineage: async (version) => [{ id: version }, { id: 'id of math/9' }],
  },
  createSamplingClient: async () => ({}) as SamplingClient, // true: nothing is asked of it here
};

test.each([
  [undefined, 'small', true],
  ['small', 'small', true],
  ['math/9', 'id of math/9', true],
  ['math/11', 'id of math/11', false],
])(
  'a version is compared with %s of the same base model, which is %s and its start: %s',
  async (against, id, isStart) => {
    expect(await startModel(source, against, judged)).toMatchObject({ id, baseModel: 'small', isStart });
  },
);

test('a version is not compared with itself: that would say nothing, and could be taken for a result', async () => {
  await expect(startModel(source, 'math/12', judged)).rejects.toMatchObject({
    code: 'invalid_argument',
    details: { field: 'against', expected: 'another version than the one that is judged', got: 'math/12' },
  });
});

test('a base model whose name looks like a version is one', async () => {
  expect(await startModel(source, 'hub/1', { id: 'x', baseModel: 'hub/1' })).toMatchObject({
    id: 'hub/1',
    baseModel: 'hub/1',
  });
});

test.each([
  ['large', 'large'],
  ['math/10', 'a version of large'],
  ['arn:x', 'a version of large'],
])('another base model is refused, as %s, because its tokens are others', async (against, got) => {
  await expect(startModel(source, against, judged)).rejects.toMatchObject({
    code: 'invalid_argument',
    details: { field: '--against', expected: expect.stringContaining('small'), got, remedy: expect.any(String) },
  });
});

test('a version that is not there is not taken for a base model', async () => {
  await expect(startModel(source, 'math/99', judged)).rejects.toMatchObject({ code: 'unknown_version' });
});

test('what keeps a version from being looked up is told, not taken for a base model', async () => {
  await expect(startModel(source, 'broken/1', judged)).rejects.toMatchObject({ code: 'unauthenticated' });
});
