/** The commands of `loopwright grader` and their options. */
import type { Command } from 'commander';
import { listOf, seconds, wholeNumber } from '../arguments.js';
import type { CommandContext } from '../context.js';
import { withJson } from '../shared-options.js';
import { taskArgument } from '../task-module.js';

export function addGrader(program: Command, context: CommandContext): void {
  const grader = program.command('grader').description('test the grader of a task before a model is trained on it');
  withJson(grader.command('test'))
    .description('grade labelled completions, good and bad: what is wrong, unstable, slow, or pays for form alone')
    .argument(taskArgument.flags, taskArgument.help)
    .option('--repeats <n>', 'gradings of each completion', wholeNumber(1, 1000), 3)
    .option('--concurrency <n>', 'gradings at once', wholeNumber(1, 10_000), 16)
    .option('--timeout <seconds>', 'of one grading', seconds, 30)
    .option('--step-seconds <n>', 'what the rest of a training step takes, as preflight forecasts it', seconds)
    .option('--labelled-only', 'make none at all: the cases of the task alone')
    .option(
      '--correctness <names>',
      'components that are about correctness (default: by what they tell apart)',
      listOf(),
    )
    .option('--out <file>', 'the result, which runs ask for (default: grader-gate.json beside the task)')
    .addHelpText('after', '\nExit code 1 where the grader fails. More: docs/guides/graders.md.')
    .action(async (task, options) => (await import('./test-command.js')).graderTestCommand(task, options, context));
}
