import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { loadTask } from './task-module.js';

let folder: TemporaryDirectory;
const grader = "export const grade = ({ text }) => ({ status: 'ok', reward: text === '1' ? 1 : 0 });\n";
const source = `
import { grade } from './grader.js';
const problem = { id: 'a', question: '1=', answer: '1' };
export const task = { name: 'one', environment: { name: 'one', draw: () => problem, grade }, train: [problem] };
`;

beforeEach(async () => {
  folder = await temporaryDirectory();
});
afterEach(() => folder[Symbol.asyncDispose]());

async function write(name: string, text: string): Promise<string> {
  const path = join(folder.path, name);
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(path, text);
  return path;
}

it('is found by its file, and by its folder', async () => {
  await write('a/grader.js', grader);
  await write('a/package.json', '{"type":"module"}');
  const file = await write('a/task.js', source);
  expect(await loadTask(file)).toMatchObject({ file, task: { name: 'one' } });
  expect(await loadTask(join(folder.path, 'a'))).toMatchObject({ file });
});

it.each([
  ['none', 'not_found', undefined],
  ['throws.mjs', 'invalid_argument', "throw new Error('no\\u001b key');"],
  ['other.mjs', 'invalid_argument', 'export const tasks = [];'],
  ['wrong.mjs', 'invalid_argument', 'export const task = { name: 7 };'],
])('%s is refused with what is wrong', async (name, code, text) => {
  if (text !== undefined) await write(name, text);
  const error: unknown = await loadTask(join(folder.path, name)).catch((cause: unknown) => cause);
  expect(error).toMatchObject({ code });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  expect(String(error)).not.toMatch(/\u001b/);
});

it('a folder without a task is told which names are looked for', async () => {
  await expect(loadTask(folder.path)).rejects.toThrow('task.ts, task.js, task.mjs');
});

it('TypeScript that nothing here runs is refused with the remedy', async () => {
  if ('typescript' in process.features && process.features.typescript !== false) return; // this Node runs it
  const file = await write('task.ts', source);
  await expect(loadTask(file)).rejects.toThrow('tsx');
});
