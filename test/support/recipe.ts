/** A recipe from outside: its program, and the commands on its task, each with a home of its own. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type TemporaryDirectory, temporaryDirectory } from '@loopwright/testkit';
import { readRun, type StoredRun } from 'loopwright';
import { expect } from 'vitest';
import { type CommandEnd, runCommand } from './command.js';

const run = promisify(execFile);

export interface TrainedRecipe {
  readonly stdout: string;
  readonly stderr: string;
  readonly run: StoredRun;
}

export interface Recipe extends AsyncDisposable {
  /** Runs `train.ts` to its end. @throws where it ends with another code than 0 */
  train(args: readonly string[]): Promise<TrainedRecipe>;
  /** A path in the recipe's home, for a run folder of its own. */
  at(name: string): string;
  /** `loss/mean` of each step of the run that is kept at `name`, in order. */
  lossesOf(name: string): Promise<readonly (number | undefined)[]>;
  graderTest(args?: readonly string[]): Promise<CommandEnd>;
  preflight(args?: readonly string[]): Promise<CommandEnd>;
}

/** @param testUrl `import.meta.url` of a test beside `train.ts` and `task.ts` */
export async function recipeOf(testUrl: string): Promise<Recipe> {
  const directory = fileURLToPath(new URL('.', testUrl));
  const home: TemporaryDirectory = await temporaryDirectory();
  const env = { PATH: process.env.PATH ?? '', HOME: home.path, LOOPWRIGHT_HOME: home.path };
  const folder = join(home.path, 'run');
  const command = (name: readonly string[], out: string, args: readonly string[]): Promise<CommandEnd> =>
    runCommand([...name, directory, '--json', '--out', join(home.path, out), ...args], { home: home.path });
  return {
    async train(args) {
      const whole = ['--import', 'tsx', join(directory, 'train.ts'), '--run', folder, ...args];
      const { stdout, stderr } = await run(process.execPath, whole, { env });
      return { stdout, stderr, run: await readRun(folder) };
    },
    at: (name) => join(home.path, name),
    async lossesOf(name) {
      const { steps } = await readRun(join(home.path, name));
      return steps.filter(({ type }) => type === 'step-end').map(({ metrics }) => metrics['loss/mean']);
    },
    graderTest: (args = []) => command(['grader', 'test'], 'gate.json', args),
    preflight: (args = []) => command(['preflight'], 'preflight', args),
    [Symbol.asyncDispose]: () => home[Symbol.asyncDispose](),
  };
}

/** Options of a run of so many steps on the bundled model. */
export function tinySteps(steps: number): readonly string[] {
  return ['--model', 'loopwright-tiny', '--max-steps', String(steps)];
}

/** A run of two steps that is given a third goes on, doing nothing again, and has the losses of one that was never stopped. */
export async function expectGoesOn(recipe: Recipe): Promise<void> {
  await recipe.train([...tinySteps(2), '--run', recipe.at('stopped')]);
  const { stdout, stderr } = await recipe.train([...tinySteps(3), '--resume', recipe.at('stopped')]);
  expect(stderr).toMatch(/ goes on after step 2, /);
  expect(stdout).not.toMatch(/^(?:after 0 steps|step [12]\/)/m);
  await recipe.train([...tinySteps(3), '--run', recipe.at('whole')]);
  const [resumed, whole] = [await recipe.lossesOf('stopped'), await recipe.lossesOf('whole')];
  expect(whole).toHaveLength(3);
  expect(resumed).toEqual(whole);
}
