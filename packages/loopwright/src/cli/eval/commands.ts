/** The options of `loopwright eval`. */
import type { Command } from 'commander';
import { seconds, wholeNumber } from '../arguments.js';
import type { CommandContext } from '../context.js';
import { withJson } from '../shared-options.js';
import { taskArgument } from '../task-module.js';

export function addEval(program: Command, context: CommandContext): void {
  withJson(program.command('eval'))
    .description(
      'compare a saved version with the start of its training on held-out rows, and attach the results to it',
    )
    .argument(taskArgument.flags, taskArgument.help)
    .argument('<version>', 'group/number, or the ARN')
    .option('--against <model>', 'another version of the same base model (default: that base)')
    .option('--run <folders...>', 'runs that trained it: held-out rows are compared with what they met')
    .option('--leave-out', 'leave out rows that were trained on, instead of refusing')
    .option('--problems <n>', 'held-out rows at most, from the first', wholeNumber(2, 10_000_000))
    .option('--timed <n>', 'rows that are answered alone for the time that it takes', wholeNumber(0, 10_000), 20)
    .option('--regression <tasks...>', 'tasks whose pass rate must not fall')
    .option(
      '--regression-command <commands...>',
      'commands that write {"id", "pass"} lines for the model in LOOPWRIGHT_EVAL_MODEL',
    )
    .option('--command-timeout <seconds>', 'of one run of a regression command', seconds, 3600)
    .option('--timeout <seconds>', 'of a call of the grader or the world of a task', seconds, 30)
    .option('--margin <points>', 'points that a pass rate may have fallen by', wholeNumber(0, 100), 5)
    .option('--prices <file>', 'JSON with prices of a million tokens, as loopwright usage takes it')
    .option('--no-attach', 'leave the version as it is')
    .option('--url <url>', 'of the server that has the version (default: LOOPWRIGHT_URL, or this machine)')
    .option('--api-key <key>', 'of the server (default: LOOPWRIGHT_API_KEY)')
    .addHelpText('after', '\nExit code 1 when it is worse, or a suite fell. More: docs/guides/evaluation.md.')
    .action(async (task, version, options) =>
      (await import('./eval-command.js')).evalCommand({ path: task, version }, options, context),
    );
}
