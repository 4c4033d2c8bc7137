/** `loopwright new`: a folder with a task that runs as it stands. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isCancel, text } from '@clack/prompts';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import type { CommandContext } from '../context.js';
import { ownVersion } from '../version.js';

export interface NewTaskOptions {
  /** Also the folder, below the current one. */
  readonly name?: string;
  /** Below this; the current one by default. */
  readonly parent?: string;
}

const templateDirectory = fileURLToPath(new URL('../../../templates/task', import.meta.url));

/** Names that the published package can't carry, or that would be read as its own. */
const realNames: Readonly<Record<string, string>> = {
  gitignore: '.gitignore',
  npmrc: '.npmrc',
  'package.template.json': 'package.json',
};

export async function newTask(
  { name: given, parent = '.' }: NewTaskOptions,
  { console }: CommandContext,
): Promise<void> {
  const name = checkedName(given ?? (await askForName(console)));
  const directory = resolve(parent, name);
  const files = await writeTemplate(directory, name);
  console.event({ type: 'created', name, directory, files });
  console.line(`${console.paint.green('Created')} ${relative('.', directory) || '.'}`);
  for (const file of files) console.line(`  ${file}`);
  console.line();
  console.line('Go on with:');
  console.line(`  cd ${relative('.', directory) || '.'}`);
  console.line('  npm install');
  console.line('  npm test          the test of the grader');
  console.line('  npm run train     the loop, on the bundled model');
}

/** @throws `invalid_argument` */
function checkedName(name: string): string {
  if (/^[a-z0-9][a-z0-9._-]{0,99}$/.test(name) && name !== 'node_modules') return name;
  throw complaint({
    field: 'name',
    expected: 'lower-case letters, digits, hyphens, dots and underscores, beginning with a letter or digit',
    got: `${name.length} characters that are not`,
    remedy: 'such as my-task',
  });
}

async function askForName(console: CommandContext['console']): Promise<string> {
  if (console.json || process.stdin.isTTY !== true || console.stdout.isTTY !== true) {
    throw complaint({ field: 'name', expected: 'a name for the task', got: 'none', remedy: 'loopwright new my-task' });
  }
  const answer = await text({ message: 'What is the task called?', placeholder: 'my-task', defaultValue: 'my-task' });
  if (isCancel(answer)) throw new LoopwrightError({ code: 'cancelled', message: 'interrupted: nothing was written' });
  return answer;
}

/** @throws `invalid_argument` when the folder holds something already */
async function writeTemplate(directory: string, name: string): Promise<string[]> {
  const there = await readdir(directory).catch(() => []); // not there yet
  if (there.length > 0) {
    throw complaint({
      field: 'name',
      expected: 'a folder that is empty or not there yet',
      got: `${directory}, which holds ${there.length} files`,
      remedy: 'choose another name',
    });
  }
  await mkdir(directory, { recursive: true });
  const written: string[] = [];
  for (const file of (await readdir(templateDirectory)).sort()) {
    const source = await readFile(join(templateDirectory, file), 'utf8');
    const target = realNames[file] ?? file;
    await writeFile(
      join(directory, target),
      source.replaceAll('__NAME__', name).replaceAll('__VERSION__', `^${ownVersion()}`),
    );
    written.push(target);
  }
  return written;
}
