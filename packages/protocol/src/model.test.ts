import { expect, it } from 'vitest';
import { pinnedName, splitPinned } from './model.js';

it.each([
  ['org/name@abc', 'org/name', 'abc'],
  ['org/name@refs/pr/1', 'org/name', 'refs/pr/1'],
  ['org/name@', 'org/name', ''],
  ['org/name', 'org/name', undefined],
  ['loopwright-tiny', 'loopwright-tiny', undefined],
  ['/models/mine@home', '/models/mine@home', undefined],
  ['/models/org/name@2', '/models/org/name@2', undefined],
  ['C:\\models\\a@b', 'C:\\models\\a@b', undefined],
  ['C:/a@b', 'C:/a@b', undefined],
  ['./mine@2', './mine@2', undefined],
  ['a@b', 'a@b', undefined],
])('%s is %s at %s', (name, repository, revision) => {
  expect(splitPinned(name)).toEqual({ repository, revision });
});

it('a pinned name comes apart into what it was made of', () => {
  const commit = 'a'.repeat(40);
  expect(splitPinned(pinnedName({ repository: 'org/name', commit }))).toEqual({
    repository: 'org/name',
    revision: commit,
  });
});
