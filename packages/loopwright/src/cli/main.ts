/** The `loopwright` command. */
import { asLoopwrightError, diskFull, isNoSpace } from '@loopwright/protocol';
import { readSettings } from '../config.js';
import { endProcess } from '../ending.js';
import { Console, describeError } from './console.js';
import { exitCodes } from './exit-codes.js';
import { run } from './program.js';

const settings = readSettings();
const console = new Console({ stdout: process.stdout, stderr: process.stderr, debug: settings.debug });
// A reader that goes away (`loopwright demo | head`) ends the output, not the run.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return;
  // Told beside the output, also to programs: nothing more can be written there.
  const { code } = error;
  const told = isNoSpace(code) ? diskFull({ field: 'standard output', got: code, cause: error }) : error;
  console.note(describeError(asLoopwrightError(told)));
  endProcess(exitCodes.failed);
});
process.exitCode = await run(process.argv.slice(2), { console, settings });
// All is said: what a task still holds open, such as the processes of a sandbox, must not keep the command from ending.
for (const stream of [process.stdout, process.stderr])
  await new Promise<void>((resolve) => stream.write('', () => resolve()));
endProcess();
