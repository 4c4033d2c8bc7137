/** The commands and their options. */

import { devices, samplerPrecisions } from '@loopwright/engine';
import { LoopwrightError, usageGroupings } from '@loopwright/protocol';
import { wireNames } from '@loopwright/wires';
import { Command, CommanderError, Option } from 'commander';
import type { Settings } from '../config.js';
import { memorySize, modelArgument, seconds, time, wholeNumber, wiresArgument } from './arguments.js';
import type { Console } from './console.js';
import type { CommandContext } from './context.js';
import { demoDefaults } from './demo/settings.js';
import { addEval } from './eval/commands.js';
import { type ExitCode, exitCodes } from './exit-codes.js';
import { exportFormats } from './export/settings.js';
import { addGrader } from './grader/commands.js';
import { addRegistry } from './registry/commands.js';
import { addRuns } from './runs/commands.js';
import { addSamples } from './samples/commands.js';
import { resumeOptions, withJson, withServer } from './shared-options.js';
import { taskArgument } from './task-module.js';
import { addTemplates } from './templates/commands.js';
import { ownVersion } from './version.js';

export interface RunContext {
  readonly console: Console;
  readonly settings: Settings;
}

const logLevels = ['silent', 'error', 'warn', 'info', 'debug'] as const;

const footer = `
Exit codes: 0 done, 1 failed, 2 wrong command line, 130 interrupted.
Environment: LOOPWRIGHT_URL and LOOPWRIGHT_API_KEY (a server to use), LOOPWRIGHT_HOME (data, models and caches; default
~/.loopwright), LOOPWRIGHT_MODELS (folders with models), LOOPWRIGHT_DEVICE (what engines compute on),
LOOPWRIGHT_DEBUG=1 (stacks of errors), NO_COLOR. Of the model hub:
HF_TOKEN, HF_ENDPOINT, HF_HUB_CACHE or HF_HOME (where pulled models lie), HF_HUB_OFFLINE=1 (ask nothing of it).`;

/** Runs a command line, without the names of node and script. @returns the exit code */
export async function run(args: readonly string[], { console, settings }: RunContext): Promise<number> {
  let exitCode: ExitCode = exitCodes.ok;
  const context: CommandContext = {
    console,
    settings,
    exitWith: (code) => {
      exitCode = code;
    },
  };
  const program = buildProgram(context);
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    console.error(error);
    return LoopwrightError.isInstance(error) && error.code === 'cancelled' ? exitCodes.interrupted : exitCodes.failed;
  }
}

function buildProgram(context: CommandContext): Command {
  const { console } = context;
  const program = new Command('loopwright')
    .description('Write your own post-training loop for a language model; Loopwright runs the model.')
    .version(ownVersion())
    .exitOverride()
    .configureOutput({
      writeOut: (text) => console.stdout.write(text),
      writeErr: (text) => console.stderr.write(text),
    })
    .showHelpAfterError('(see --help)')
    .addHelpText('after', footer)
    .hook('preAction', (_program, command) => {
      if (command.optsWithGlobals().json === true) console.useJson();
    });

  const demo = withJson(program.command('demo'))
    .description('train the bundled model with rewards, here and now: about two minutes, no network')
    .option('--steps <n>', 'training steps', wholeNumber(1, 10_000), demoDefaults.steps)
    .option('--seed <n>', 'of problems, samples and adapter', wholeNumber(0, 2 ** 31 - 1), demoDefaults.seed)
    .option('--held-out <n>', 'problems to be judged by, before and after', wholeNumber(1, 1000), demoDefaults.heldOut)
    .action(async (options) => (await import('./demo/demo.js')).demo(options, context));
  for (const option of resumeOptions()) demo.addOption(option);

  withJson(program.command('serve'))
    .description('run a server that loops connect to by LOOPWRIGHT_URL')
    .option('--port <n>', '0 takes a free one', wholeNumber(0, 65_535), 8080)
    .option('--host <address>', 'others than 127.0.0.1 need a key', '127.0.0.1')
    .option('--data <dir>', 'database, saved versions, checkpoints (default: data in LOOPWRIGHT_HOME)')
    .option(
      '--model <id=dir>',
      'a base model to offer, besides the bundled one and those in the model folders; repeatable',
      modelArgument,
    )
    .option('--api-key <key>', 'ask it of every request, as bearer or AWS secret (default: LOOPWRIGHT_API_KEY)')
    .option('--threads <n>', 'of an engine', wholeNumber(1, 256))
    .addOption(
      new Option('--device <device>', 'what engines compute on (default: LOOPWRIGHT_DEVICE, or cpu)').choices(devices),
    )
    .addOption(
      new Option('--sampler-precision <precision>', 'int8: faster sampling, from other probabilities than are trained')
        .choices(samplerPrecisions)
        .default('float32'),
    )
    .option('--max-memory <size>', 'of an engine, such as 6GB (default: nine tenths of the machine’s)', memorySize)
    .option('--low-memory', 'new sessions train in a fraction of the memory, a third slower')
    .option(
      '--swap-after <minutes>',
      'put sessions without work on the disk until they go on, and let unused models go; 0 keeps all in memory',
      wholeNumber(0, 10_000),
      10,
    )
    .option(
      '--max-redo-seconds <n>',
      'work of an engine at most that is done again after a crash: snapshots are taken so often; 0 after every operation',
      wholeNumber(0, 86_400),
      30,
    )
    .option('--wires <list>', `speak these wires only, of ${wireNames.join(',')} (default: all)`, wiresArgument)
    .option('--max-sessions <n>', 'that live at the same time', wholeNumber(1, 10_000), 8)
    .option(
      '--idle-timeout <minutes>',
      'a session without operations for so long expires; 0 lets it live',
      wholeNumber(0, 1_000_000),
      0,
    )
    .option('--lifetime <minutes>', 'a session expires at this age; 0 lets it live', wholeNumber(0, 10_000_000), 0)
    .option(
      '--save-ttl <hours>',
      'weights that SageMaker clients save expire after so long; 0 keeps them, as states are kept always',
      wholeNumber(0, 87_600),
      0,
    )
    .option(
      '--shutdown-seconds <n>',
      'it has ended by then after Ctrl-C or SIGTERM; a second one ends it at once',
      wholeNumber(1, 3600),
      20,
    )
    .option('--max-body <size>', 'of a request (default: 64 MiB); docs/guides/limits.md has all limits', memorySize)
    .option('--max-requests <n>', 'at once, held ones included (default: 2048)', wholeNumber(1, 100_000))
    .addOption(new Option('--log-level <level>', 'JSON lines on the standard error').choices(logLevels).default('warn'))
    .action(async (options) => (await import('./serve.js')).serve(options, context));

  withJson(program.command('new'))
    .description('begin a task of your own: environment, grader, loop, test')
    .argument('[name]', 'name and folder of the task; asked for where it is left out')
    .action(async (name, options) => (await import('./new/new-task.js')).newTask({ name, ...options }, context));

  const models = withJson(program.command('models'))
    .enablePositionalOptions()
    .description('list base models, or saved versions')
    .option('--saved', 'the versions that runs saved, instead')
    .option('--url <url>', 'ask this server instead of this machine')
    .option('--api-key <key>', 'of the server (default: LOOPWRIGHT_API_KEY)')
    .action(async (options) => (await import('./models/models.js')).models(options, context));
  withJson(models.command('pull'))
    .description(
      'fetch a model of the hub into the cache that Hugging Face tools share; goes on where an earlier pull stopped',
    )
    .argument('<name>', 'org/name, or org/name@revision with a branch, tag or commit')
    .option('--accept-license', 'record that you accept its licence; gated models need it, and HF_TOKEN')
    .action(async (name, options) => (await import('./models/pull.js')).pullCommand(name, options, context));

  const data = program.command('data').description('data sets of the hub');
  withJson(data.command('pull'))
    .description(
      'fetch a data set of the hub into the cache that Hugging Face tools share; openDataset({ hub }) finds it there',
    )
    .argument('<name>', 'owner/name, or owner/name@revision with a branch, tag or commit')
    .option('--config <name>', 'configuration, where there are several')
    .option('--split <name>', 'this one alone, such as train (default: all)')
    .option('--accept-license', 'record that you accept its licence; gated data sets need it, and HF_TOKEN')
    .action(async (name, options) => (await import('./data/pull.js')).dataPullCommand(name, options, context));

  withJson(program.command('export'))
    .description('write saved weights or a model as files for other tools')
    .argument('<model>', 'ARN of a saved version, directory of an adapter or model, GGUF file, or name of a base model')
    .argument('<target>', 'a new directory, or for gguf a new file')
    .addOption(
      new Option(
        '--format <format>',
        'merged: a Hugging Face directory in float32, an adapter folded in; peft: the adapter alone; gguf: one file for llama.cpp',
      )
        .choices(exportFormats)
        .default('merged'),
    )
    .addOption(new Option('--type <type>', 'of the matrices of a gguf').choices(['f16', 'q8_0']).default('q8_0'))
    .option(
      '--base <model>',
      'what an adapter stands on (default: what its session recorded, or its adapter_config.json says)',
    )
    .option('--data <dir>', 'data directory of the version (default: whichever of the home folder has it)')
    .addOption(
      new Option('--max-shard <size>', 'split a merged model into files of this size at most')
        .argParser(memorySize)
        .default(2e9, '2GB'),
    )
    .action(async (model, target, options) =>
      (await import('./export/export.js')).exportCommand({ model, target }, options, context),
    );

  const sessions = program.command('sessions').description('list, stop and delete the sessions of a running server');
  withServer(sessions.command('list', { isDefault: true }))
    .description('newest last')
    .action(async (options) => (await import('./sessions.js')).listCommand(options, context));
  withServer(sessions.command('stop').argument('<name>'))
    .description('end a session; its saved versions stay')
    .action(async (name, options) => (await import('./sessions.js')).stopCommand(name, options, context));
  withServer(sessions.command('delete').argument('<name>'))
    .description('delete a session that has ended, with its operations; its saved versions stay')
    .option('--stop', 'stop it first where it runs')
    .action(async (name, options) => (await import('./sessions.js')).deleteCommand(name, options, context));

  withServer(program.command('usage'))
    .description('what the sessions of a running server used, deleted ones included, and what it comes to')
    .addOption(new Option('--by <what>', 'a line for each').choices(usageGroupings).default('session'))
    .option('--from <time>', 'operations that ended at or after it, such as 2026-03-01 or 2026-03-01T14:05Z', time)
    .option('--to <time>', 'operations that ended before it', time)
    .option(
      '--prices <file>',
      'JSON with prices of a million tokens: {"currency": "USD", "models": {"*": {"prefill": 0.1, "sample": 0.4, "training": 0.4}}}',
    )
    .action(async (options) => (await import('./usage/usage.js')).usageCommand(options, context));

  withJson(program.command('preflight'))
    .description('sample a task from its base model with the real grader, and say whether to train on it')
    .argument(taskArgument.flags, taskArgument.help)
    .option('--model <model>', 'base model (default: that of the task, or loopwright-tiny)')
    .option('--samples <n>', 'completions of a prompt', wholeNumber(1, 1024), 8)
    .option('--prompts <n>', 'prompts that are sampled', wholeNumber(1, 1_000_000), 100)
    .option('--all', 'sample every prompt')
    .option('--concurrency <n>', 'prompts at once', wholeNumber(1, 1024), 16)
    .option(
      '--context-length <n>',
      'tokens of the model at most, to check prompts against (default: what the model says)',
      wholeNumber(1, 100_000_000),
    )
    .option('--seed <n>', 'of prompts and samples', wholeNumber(0, 2 ** 31 - 1), 0)
    .option('--fresh', 'measure anew, whatever an earlier attempt measured')
    .option('--format-gap', 'draw answers that the grader could not read until it can: what their form is worth')
    .option('--draws <n>', 'of one answer at most, with --format-gap', wholeNumber(2, 10_000), 16)
    .option('--timeout <seconds>', 'of a call of the grader or the world', seconds, 30)
    .option('--no-time', 'measure no training steps, and forecast no time')
    .option('--prices <file>', 'a table of prices, as loopwright usage takes it, to forecast the cost')
    .option(
      '--out <dir>',
      'report, pass rates and filtered data; goes on where it was interrupted (default: preflight beside the task)',
    )
    .addHelpText('after', '\nExit code 1 on no go. More: docs/guides/preflight.md.')
    .action(async (task, options) =>
      (await import('./preflight/preflight-command.js')).preflightCommand(task, options, context),
    );

  withJson(program.command('smoke'))
    .description(
      'try every part of a run once, quickly, on the bundled model: grader, data, sampling, steps, checkpoint, tracking',
    )
    .argument(taskArgument.flags, taskArgument.help)
    .option('--prompts <n>', 'prompts that are sampled', wholeNumber(1, 10_000), 50)
    .option('--steps <n>', 'training steps', wholeNumber(2, 10_000), 20)
    .option('--seed <n>', 'of prompts, samples and adapter', wholeNumber(0, 2 ** 31 - 1), 0)
    .addHelpText('after', '\nExit code 1 where a part fails. More: docs/guides/smoke.md.')
    .action(async (task, options) => (await import('./smoke/smoke-command.js')).smokeCommand(task, options, context));

  addGrader(program, context);
  addRuns(program, context);
  addSamples(program, context);
  addEval(program, context);
  withJson(program.command('report'))
    .description('write a run as one HTML file: curves, samples side by side, settings')
    .argument('<run>', 'its folder')
    .option('--out <file>', 'default: report.html in the folder')
    .action(async (run, options) => (await import('./report/report.js')).reportCommand(run, options, context));
  addRegistry(program, context);
  addTemplates(program, context);

  withJson(program.command('replay'))
    .description('run recorded sessions again, from an empty engine, and say where a bit differs')
    .argument('<dir>', 'a data directory that no server works on; it is only read')
    .option('--session <name>', 'this one alone (default: all, one after another)')
    .option(
      '--threads <n>',
      'leave the recorded plan, to see how much another number of threads changes',
      wholeNumber(1, 256),
    )
    .addOption(new Option('--device <device>', 'leave the recorded plan likewise').choices(devices))
    .option('--keep <dir>', 'keep what it came to as a data directory, for diff: new, or empty')
    .option('--model <id=dir>', 'a base model that sessions name, where it is not in the model folders', modelArgument)
    .action(async (dir, options) => (await import('./replay/replay.js')).replayCommand(dir, options, context));

  withJson(program.command('diff'))
    .description('say in which operation two recorded sessions begin to differ, and how')
    .argument('<dir>', 'a data directory that no server works on; it is only read')
    .argument('<other>', 'another, or the same')
    .option('--session <name>', 'needed where there are several')
    .option('--other-session <name>', 'in the other directory (default: the same name)')
    .action(async (dir, other, options) =>
      (await import('./replay/diff.js')).diffCommand(dir, other, options, context),
    );

  withJson(program.command('doctor'))
    .description('say what is missing or slow on this machine, and how to mend it')
    .option('--port <n>', 'the port that a server would use', wholeNumber(0, 65_535), 8080)
    .option('--data <dir>', 'the data directory to look at (default: data in LOOPWRIGHT_HOME)')
    .action(async (options) => (await import('./doctor/doctor.js')).doctor(options, context));

  return program;
}
