import { stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { expect, it } from 'vitest';
import { makeFolder } from './make-folder.js';

it('makes what is missing, also by two at once, and leaves what is there', async () => {
  await using directory = await temporaryDirectory();
  const path = join(directory.path, 'a', 'b', 'c');
  await Promise.all([makeFolder(path), makeFolder(join(path, 'd')), makeFolder(path)]);
  await makeFolder(path);
  await symlink(path, join(directory.path, 'link'));
  await makeFolder(join(directory.path, 'link', 'd', 'e'));
  expect((await stat(join(path, 'd', 'e'))).isDirectory()).toBe(true);
});

it('refuses what is no folder', async () => {
  await using directory = await temporaryDirectory();
  const file = join(directory.path, 'file');
  await writeFile(file, '');
  await expect(makeFolder(file)).rejects.toMatchObject({ code: 'EEXIST' });
  await expect(makeFolder(join(file, 'a'))).rejects.toMatchObject({ code: 'ENOTDIR' });
});

it.runIf(process.platform === 'linux')('ends where a file system has no room for folders', async () => {
  await expect(makeFolder('/proc/a/b')).rejects.toMatchObject({ code: 'ENOENT' });
});
