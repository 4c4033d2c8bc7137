/** The command line of a recipe: the same few options for every one, so that its `train.ts` is the loop and little else. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { defaultTaskModel } from '@loopwright/loops';
import { Command, CommanderError } from 'commander';
import { wholeNumber } from '../cli/arguments.js';
import { exitCodes } from '../cli/exit-codes.js';
import { resumeOptions } from '../cli/shared-options.js';
import type { RemoteOptions } from '../connect.js';
import type { TrainingRunOptions } from '../training/training-run.js';
import { showErrors } from './show-errors.js';

/** What a recipe is by default. */
export interface RecipeDefaults<Own extends string = never> {
  /** Of the recipe, such as `arithmetic`. */
  readonly name: string;
  /** In a line, for `--help`. */
  readonly description?: string;
  /** Training steps. */
  readonly steps: number;
  /** Base model; default `loopwright-tiny`. */
  readonly model?: string;
  /** Default 1. */
  readonly seed?: number;
  /** Options of this recipe alone, each of which takes a text: what `--help` says of it, by its name. */
  readonly own?: Readonly<Record<Own, string>>;
}

export interface RecipeOptions<Own extends string = never> {
  /** As `createLoraTrainingClient` takes it: the path of a model directory is absolute. */
  readonly baseModel: string;
  /** For `connect`: empty where no `--url` was given, so that LOOPWRIGHT_URL or an embedded server is used. */
  readonly connection: RemoteOptions;
  /** Training steps. */
  readonly steps: number;
  readonly seed: number;
  /** Of the run: for `openRun` and `withRun`. */
  readonly folder: string;
  /** For `withTrainingRun`: folder, server, checkpoints, and what `--resume` says. */
  readonly place: Pick<TrainingRunOptions, 'folder' | 'connection' | 'resume' | 'checkpointEvery' | 'allowChanges'>;
  /** The recipe's own options, those that were given. */
  readonly own: { readonly [K in Own]?: string };
}

/**
 * Reads the command line of a recipe: `--model`, `--url`, `--max-steps`, `--seed`, `--run`, `--checkpoint-every`, `--resume`, `--allow-changes` and the recipe's own options. Ends the process with code 0
 * after `--help`, and with 2 where an option is unknown or wrong. A `LoopwrightError` that nobody catches is shown from then on as the command line shows it, and
 * ends the process with 1; LOOPWRIGHT_DEBUG=1 adds its stack.
 *
 * @param args default: those of the process
 * @example
 * const { baseModel, connection, steps, seed, folder } = recipeOptions({ name: 'arithmetic', steps: 40 });
 * await using service = await connect(connection);
 */
export function recipeOptions<Own extends string = never>(
  defaults: RecipeDefaults<Own>,
  args: readonly string[] = process.argv.slice(2),
): RecipeOptions<Own> {
  showErrors();
  try {
    return readRecipeOptions(defaults, args);
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error; // it has said what is wrong, or the help
    return process.exit(error.exitCode === 0 ? exitCodes.ok : exitCodes.usage);
  }
}

/** @internal @throws `CommanderError` after `--help` and for a wrong command line */
export function readRecipeOptions<Own extends string>(
  { name, description, steps, model = defaultTaskModel, seed = 1, own }: RecipeDefaults<Own>,
  args: readonly string[],
): RecipeOptions<Own> {
  const command = new Command(name)
    .option('--model <model>', 'base model by name, or its directory', model)
    .option('--url <url>', 'train on this server (default: LOOPWRIGHT_URL, or one in this process)')
    .option('--max-steps <n>', 'end after so many training steps', wholeNumber(1, 1_000_000), steps)
    .option('--seed <n>', 'of problems, samples and adapter', wholeNumber(0, 2 ** 31 - 1), seed)
    .option('--run <folder>', 'settings, numbers and samples of the run; one that is there is kept', `runs/${name}`)
    .allowExcessArguments(false)
    .showHelpAfterError('(see --help)')
    .exitOverride();
  if (description !== undefined) command.description(description);
  for (const option of resumeOptions()) command.addOption(option);
  const names = Object.keys(own ?? {}) as Own[]; // true: its keys
  for (const each of names) command.option(`--${each} <value>`, own?.[each]);
  command.parse(args, { from: 'user' });
  // true: the options above, with their defaults
  const values = command.opts() as CommonValues;
  const given = names.flatMap((each) => {
    const value: unknown = command.getOptionValue(camelCase(each));
    return typeof value === 'string' ? [[each, value] as const] : [];
  });
  const directory = resolve(values.model);
  const connection = values.url === undefined ? {} : { url: values.url };
  return {
    baseModel: existsSync(join(directory, 'config.json')) ? directory : values.model,
    connection,
    ...{ steps: values.maxSteps, seed: values.seed, folder: values.run },
    place: {
      ...{ folder: values.run, connection, resume: values.resume, checkpointEvery: values.checkpointEvery },
      allowChanges: values.allowChanges === true,
    },
    own: Object.fromEntries(given) as { readonly [K in Own]?: string }, // true: their own names
  };
}

interface CommonValues {
  readonly model: string;
  readonly url?: string;
  readonly maxSteps: number;
  readonly seed: number;
  readonly run: string;
  readonly checkpointEvery: number;
  readonly resume?: string;
  readonly allowChanges?: boolean;
}

/** As commander keeps `--held-out`. */
function camelCase(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
