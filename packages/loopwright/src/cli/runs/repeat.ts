/** `loopwright runs repeat`: a run's command again, in a new run folder, once versions and commit have been looked at. */
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { escapeText } from '@loopwright/loops';
import {
  collectVersions,
  compareRuns,
  findRuns,
  type RunRecord,
  readRun,
  type StoredRun,
  sourceOf,
} from '@loopwright/loops/node';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import { shellText } from '../../shell-text.js';
import type { CommandContext } from '../context.js';
import { folderText } from './text.js';

export interface RepeatOptions {
  readonly yes?: boolean;
  readonly allowChanges?: boolean;
}

export async function repeatCommand(
  folder: string,
  { yes = false, allowChanges = false }: RepeatOptions,
  { console }: CommandContext,
): Promise<void> {
  const run = await readRun(folder);
  const { command, id } = run.record;
  const changes = await changesSince(run.record);
  console.event({ type: 'repeat', id, command, changes });
  console.line(escapeText(`cd ${shellText([command.cwd])} && ${shellText(command.argv)}`));
  console.line();
  for (const { what, recorded, now } of changes) console.line(escapeText(`${what}: ${recorded} then, ${now} now`));
  if (changes.length === 0) console.line('Versions and commit are as they were.');
  if (!yes) {
    console.line('Nothing was run. With --yes the command above is.');
    return;
  }
  refuseUnlessSame(run, { changes, allowChanges });
  const before = Date.now();
  const code = await execute(run.record, console.json);
  const { runs } = await findRuns(dirname(run.folder));
  const made = runs.filter(({ record }) => record.repeatOf === id && Date.parse(record.startedAt) >= before);
  for (const again of made) report(run, again, console);
  if (made.length === 0)
    console.note(`The command made no run folder beside ${folderText(run)}: does its program call openRun?`);
  if (code !== 0) throw new LoopwrightError({ code: 'operation_failed', message: `the command ended with ${code}` });
}

interface Change {
  readonly what: string;
  readonly recorded: string;
  readonly now: string;
}

async function changesSince({ versions, source, command }: RunRecord): Promise<Change[]> {
  const names = Object.keys(versions.packages);
  const now = await collectVersions(names, pathToFileURL(join(command.cwd, 'package.json')).href);
  const commit = await sourceOf(command.cwd);
  const facts: [string, string, string][] = [
    ['node', versions.node, now.node],
    ['platform', versions.platform, now.platform],
    ...names.map((name): [string, string, string] => [
      name,
      versions.packages[name] ?? '',
      now.packages[name] ?? 'not installed',
    ]),
    ['commit', sourceText(source), sourceText(commit)],
  ];
  const changes = facts
    .filter(([, recorded, current]) => recorded !== current)
    .map(([what, recorded, current]) => ({ what, recorded, now: current }));
  // What was not in the commit then may be anything now.
  if (source?.dirty === true && changes.every(({ what }) => what !== 'commit')) {
    changes.push({ what: 'files', recorded: 'changes that were not in the commit', now: 'perhaps others' });
  }
  return changes;
}

function sourceText(source: RunRecord['source']): string {
  return source === null ? 'no git repository' : `${source.commit.slice(0, 12)}${source.dirty ? ' with changes' : ''}`;
}

function refuseUnlessSame(
  { record }: StoredRun,
  { changes, allowChanges }: { readonly changes: readonly Change[]; readonly allowChanges: boolean },
): void {
  if (record.command.argv.some((word) => word.includes('[redacted]'))) {
    throw complaint({
      field: 'command',
      expected: 'a command without secrets',
      got: 'one whose secrets were not kept',
      remedy:
        'run it by hand as it is printed above, with them; give them by environment variables to have runs that can be repeated',
    });
  }
  if (changes.length === 0 || allowChanges) return;
  throw complaint({
    field: 'versions',
    expected: 'those of the run',
    got: `others: ${changes.map(({ what }) => what).join(', ')}`,
    remedy: 'install them and check the commit out, or pass --allow-changes',
  });
}

/** @returns its exit code */
function execute({ command: { cwd, argv }, id }: RunRecord, isJson: boolean): Promise<number> {
  const [file = process.execPath, ...args] = argv;
  return new Promise((resolve, reject) => {
    // The events of this command are all that a program reads from the standard output.
    const child = spawn(file, args, {
      cwd,
      stdio: ['inherit', isJson ? 2 : 'inherit', 'inherit'],
      env: { ...process.env, LOOPWRIGHT_REPEAT_OF: id },
    });
    // The terminal sends Ctrl-C to both: the program ends as it does, and this command after it.
    const wait = (): void => undefined;
    process.on('SIGINT', wait);
    child.once('error', (cause) =>
      reject(
        complaint({
          field: 'command',
          expected: 'a program that can be started',
          got: escapeText(file),
          remedy: 'run it by hand, with the Node of your choice',
          cause,
        }),
      ),
    );
    child.once('close', (code) => {
      process.off('SIGINT', wait);
      resolve(code ?? 1);
    });
  });
}

function report(first: StoredRun, again: StoredRun, console: CommandContext['console']): void {
  const { changes, metrics } = compareRuns(first, again);
  // What has to do with time is never the same.
  const numbers = metrics.filter(({ name }) => !name.startsWith('time/'));
  const differing = numbers.filter(({ differing }) => differing > 0).map(({ name }) => name);
  console.event({
    type: 'repeated',
    folder: again.folder,
    id: again.record.id,
    state: again.state,
    changes,
    differing,
  });
  console.line();
  console.line(`${folderText(again)}: ${again.state}`);
  const changed = changes.map(({ path }) => escapeText(path));
  if (changed.length > 0) console.line(`Set otherwise: ${changed.join(', ')}`);
  console.line(
    differing.length === 0
      ? `All ${numbers.length} metrics but times are the same at every step.`
      : `${differing.length} of ${numbers.length} metrics differ: ${differing.map(escapeText).join(', ')}`,
  );
}
