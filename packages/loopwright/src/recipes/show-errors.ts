/** What ends a recipe's program is shown as the command line shows errors: field, expected, got and remedy, rather than a stack. */
import { LoopwrightError } from '@loopwright/protocol';
import { Console } from '../cli/console.js';
import { exitCodes } from '../cli/exit-codes.js';
import { readSettings } from '../config.js';

/** From now on, in this process. Errors of other kinds are shown whole, as Node shows them. */
export function showErrors(): void {
  process.on('uncaughtException', (error) => {
    if (LoopwrightError.isInstance(error)) {
      const { debug } = readSettings();
      const console = new Console({ stdout: process.stdout, stderr: process.stderr, debug });
      console.error(error);
      if (!debug) console.note('LOOPWRIGHT_DEBUG=1 shows where it was raised.');
    } else console.error(error);
    process.exit(exitCodes.failed);
  });
}
