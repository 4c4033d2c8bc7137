/** The commands of `loopwright runs` and their options. */
import type { Command } from 'commander';
import type { CommandContext } from '../context.js';
import { withJson } from '../shared-options.js';

export function addRuns(program: Command, context: CommandContext): void {
  const runs = program
    .command('runs')
    .description('run folders: list, show, compare, repeat')
    .addHelpText(
      'after',
      `
A run folder is made by openRun in a program, and by the demo. Examples:
  loopwright runs                        those below ./runs, or those of the demo
  loopwright runs show runs/math-2
  loopwright runs compare runs/math runs/math-2
  loopwright runs repeat runs/math --yes`,
    );
  withJson(runs.command('list', { isDefault: true }))
    .description('list the runs of a folder and the folders below it, oldest first')
    .argument('[dir]', 'default: runs, or where there is none, runs in LOOPWRIGHT_HOME')
    .action(async (dir, options) => (await import('./list.js')).listCommand(dir, options, context));
  withJson(runs.command('show'))
    .description('tell all that is known of a run, and its numbers')
    .argument('<run>', 'its folder')
    .action(async (run) => (await import('./show.js')).showCommand(run, context));
  withJson(runs.command('compare'))
    .description('say in what two runs were set otherwise, and how their numbers differ at the same steps')
    .argument('<a>', 'folder of a run')
    .argument('<b>', 'folder of another')
    .action(async (a, b) => (await import('./compare.js')).compareCommand({ a, b }, context));
  withJson(runs.command('repeat'))
    .description('say how a run is done again, and whether versions are still the same')
    .argument('<run>', 'its folder')
    .option('--yes', 'do it: the command that the run recorded is run, in its working directory')
    .option('--allow-changes', 'also where versions, or the program’s commit, are others now')
    .action(async (run, options) => (await import('./repeat.js')).repeatCommand(run, options, context));
}
