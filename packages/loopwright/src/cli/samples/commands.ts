/** The options of `loopwright samples`. */
import { type Command, Option } from 'commander';
import { seconds, wholeNumber } from '../arguments.js';
import type { CommandContext } from '../context.js';
import { withJson } from '../shared-options.js';

export function addSamples(program: Command, context: CommandContext): void {
  withJson(program.command('samples'))
    .description(
      'show what a model wrote in a run: the same prompts at start, middle and end, and the best, worst and longest of a step',
    )
    .argument('<run>', 'its folder')
    .option('--prompts <n>', 'prompts at most', wholeNumber(1, 100_000), 20)
    .option('--step <n>', 'the best, worst and longest of this step alone', wholeNumber(0, 1_000_000_000))
    .option('--full', 'whole texts')
    .option('--tokens', 'ids and logprobs of each answer too')
    .option('--sign-off <name>', 'record that you looked at what is shown')
    .option('--note <text>', 'what you say of it, with --sign-off')
    .addOption(
      new Option(
        '--regrade <task>',
        'grade the stored answers again by this task’s grader, and say whose rewards and advantages change',
      ).conflicts(['step', 'full', 'tokens', 'signOff']),
    )
    .option('--concurrency <n>', 'answers graded at once, with --regrade', wholeNumber(1, 1024), 8)
    .option('--timeout <seconds>', 'of one grading, with --regrade', seconds, 30)
    .addHelpText('after', '\nMore: docs/guides/samples.md.')
    .action(async (run, { regrade, concurrency, timeout, ...options }) =>
      regrade === undefined
        ? (await import('./samples-command.js')).samplesCommand(run, options, context)
        : (await import('./regrade-command.js')).regradeCommand(run, { task: regrade, concurrency, timeout }, context),
    );
}
