/** The commands of `loopwright registry` and their options. */
import { approvalStatuses, versionKinds } from '@loopwright/protocol';
import { versionParts } from '@loopwright/wires/loopwright';
import { type Command, Option } from 'commander';
import { wholeNumber } from '../arguments.js';
import type { CommandContext } from '../context.js';
import { withServer } from '../shared-options.js';

const versionHelp = 'group/number, or the ARN';

export function addRegistry(program: Command, context: CommandContext): void {
  const registry = program
    .command('registry')
    .description('saved versions of a running server: list, judge, tag, measure, download, delete')
    .addHelpText(
      'after',
      `
A version is named by group/number or by its ARN. Examples:
  loopwright registry list math --approval Approved
  loopwright registry metrics math/12 eval/accuracy=0.52 --note "held-out, 500 problems"
  loopwright registry approve math/12 --note "better than 9"
  loopwright registry download math/12 ./adapter --part adapter`,
    );
  const command = (name: string, description: string) => withServer(registry.command(name)).description(description);
  const onVersion = (name: string, description: string) =>
    command(name, description).argument('<version>', versionHelp);
  const annotate = () => import('./annotate.js');

  command('groups', 'list groups, with how many versions they have').action(async (options) =>
    (await import('./list.js')).groupsCommand(options, context),
  );
  command('list', 'list versions, newest first')
    .argument('[group]', 'of this group alone, by name or ARN')
    .addOption(new Option('--kind <kind>', 'of this kind alone').choices(versionKinds))
    .addOption(new Option('--approval <status>', 'of this approval alone').choices(approvalStatuses))
    .option('--session <name>', 'saved by this session')
    .option('--tag <tag>', 'with this tag: a key, or key=value')
    .option('--all', 'also those without description that expire, which loops make for their next samples')
    .option('--ended', 'also those that have expired or were deleted')
    .option('--limit <n>', 'at most', wholeNumber(1, 100_000), 1000)
    .action(async (group, options) => (await import('./list.js')).listCommand(group, options, context));
  onVersion('show', 'tell all that is known of a version: lineage, metrics, files').action(async (version, options) =>
    (await import('./show.js')).showCommand(version, options, context),
  );
  onVersion('approve', 'approve a version that an evaluation was attached to (loopwright eval)')
    .option('--note <text>', 'why')
    .option(
      '--without-results <reason>',
      'although results are missing or fell; the reason, of ten characters or more, is kept in the note',
    )
    .action(async (version, options) =>
      (await annotate()).approvalCommand(version, { ...options, to: 'Approved' }, context),
    );
  onVersion('reject', 'reject a version')
    .option('--note <text>', 'why')
    .action(async (version, options) =>
      (await annotate()).approvalCommand(version, { ...options, to: 'Rejected' }, context),
    );
  onVersion('describe', 'give a version another description')
    .argument('<text>', '1024 characters at most; "" takes it away')
    .action(async (version, text, options) => (await annotate()).describeCommand({ version, text }, options, context));
  onVersion('tag', 'tag a version')
    .argument('[tags...]', 'key=value')
    .option('--remove <keys...>', 'take these away')
    .action(async (version, tags, options) => (await annotate()).tagCommand({ version, tags }, options, context));
  onVersion(
    'metrics',
    'attach figures to a version; one of the same name is replaced, but for results that an approval asks for',
  )
    .argument('[metrics...]', 'name=value, such as eval/accuracy=0.52')
    .option('--note <text>', 'how they were measured')
    .option('--remove <names...>', 'take these away')
    .action(async (version, metrics, options) =>
      (await annotate()).metricsCommand({ version, metrics }, options, context),
    );
  onVersion('keep', 'keep a version that would expire').action(async (version, options) =>
    (await annotate()).keepCommand(version, options, context),
  );
  onVersion('download', 'write the files of a version into a new directory, verified, with a model card')
    .argument('<target>', 'a directory that is not there yet; with --zip a file')
    .addOption(
      new Option('--part <part>', 'adapter: a PEFT directory; merged: a whole Hugging Face model, where one was saved')
        .choices(versionParts)
        .default('all'),
    )
    .option('--zip', 'one zip file instead')
    .action(async (version, target, options) =>
      (await import('./download.js')).downloadCommand({ version, target }, options, context),
    );
  onVersion('delete', 'delete a version; its number is not used again').action(async (version, options) =>
    (await annotate()).deleteCommand(version, options, context),
  );
}
