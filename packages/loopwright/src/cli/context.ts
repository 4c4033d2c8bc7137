/** What every command is handed. */
import type { Settings } from '../config.js';
import type { Console } from './console.js';
import type { ExitCode } from './exit-codes.js';

export interface CommandContext {
  readonly console: Console;
  readonly settings: Settings;
  /** Sets the exit code of a command that ends without an error. */
  readonly exitWith: (code: ExitCode) => void;
}
