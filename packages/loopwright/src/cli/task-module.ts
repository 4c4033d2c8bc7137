/** The user's task, from the module that exports it. */
import { readdir, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { defineTask, escapeText, type Task } from '@loopwright/loops';
import { complaint, LoopwrightError } from '@loopwright/protocol';

/** Help of the argument that commands take. */
export const taskArgument = {
  flags: '<task>',
  help: 'a module that exports `task` (see defineTask), or the folder of a task.ts, task.js or task.mjs',
} as const;

export interface LoadedTask {
  /** Absolute path of the module. */
  readonly file: string;
  readonly task: Task;
}

const fileNames = ['task.ts', 'task.js', 'task.mjs'] as const;

/**
 * Imports the task. TypeScript is run by the `tsx` of the task's own project or, without one, by Node where that strips types.
 *
 * @param path of the module or of its folder, against the current one
 * @throws `not_found`; `invalid_argument` when the module throws, exports no `task`, is TypeScript that nothing here runs, or
 * its task is wrong
 */
export async function loadTask(path: string): Promise<LoadedTask> {
  const file = await taskFile(path);
  if (/\.[mc]?tsx?$/.test(file)) await prepareTypeScript(file);
  let module: unknown;
  try {
    module = await import(pathToFileURL(file).href);
  } catch (cause) {
    // An error of the product says itself what is wrong.
    if (LoopwrightError.isInstance(cause)) throw cause;
    throw complaint({
      field: 'task',
      expected: `a module that can be loaded at ${file}`,
      got: cause instanceof Error ? `${cause.name}: ${escapeText(cause.message.slice(0, 500))}` : typeof cause,
      remedy: 'mend the module (LOOPWRIGHT_DEBUG=1 shows where it threw)',
      cause,
    });
  }
  const task = (module as { readonly task?: unknown }).task; // true: a module is an object
  if (task === undefined) {
    throw complaint({
      field: 'task',
      expected: `an export named task in ${file}`,
      got: Object.keys(module as object).join(', ') || 'no exports', // true: a module is an object
      remedy: 'export const task = defineTask({ name, environment, … })',
    });
  }
  return { file, task: defineTask(task as Task) }; // true: that is what it checks
}

async function taskFile(path: string): Promise<string> {
  const given = resolve(path);
  const info = await stat(given).catch(() => undefined);
  if (info?.isFile() === true) return given;
  if (info?.isDirectory() === true) {
    const there = await readdir(given);
    const name = fileNames.find((each) => there.includes(each));
    if (name !== undefined) return join(given, name);
  }
  throw complaint({
    code: 'not_found',
    field: 'task',
    expected: info === undefined ? 'a file or folder' : `a folder with ${fileNames.join(', ')}`,
    got: info === undefined ? `nothing at ${given}` : `none of them in ${given}`,
    remedy: 'name the module that exports the task, such as ./my-task/task.ts; loopwright new my-task writes one',
  });
}

async function prepareTypeScript(file: string): Promise<void> {
  const require = createRequire(join(dirname(file), 'task.js'));
  let tsx: string;
  try {
    tsx = require.resolve('tsx/esm');
  } catch {
    if ('typescript' in process.features && process.features.typescript !== false) return;
    throw complaint({
      field: 'task',
      expected: `something that runs TypeScript, for ${basename(file)}`,
      got: `Node ${process.version}, and no tsx beside the task`,
      remedy: 'npm install --save-dev tsx in its project, or use a Node that strips types (22.18 or newer)',
    });
  }
  await import(pathToFileURL(tsx).href); // as `node --import tsx/esm` does; it stays, since a task may import more while it runs
}
