/** Options that many commands have. */
import { type Command, Option } from 'commander';
import { wholeNumber } from './arguments.js';

export function withJson(command: Command): Command {
  return command.option('--json', 'one JSON value a line on the standard output');
}

/** Of commands that ask a running server. */
export function withServer(command: Command): Command {
  return withJson(command)
    .option('--url <url>', 'of the server (default: LOOPWRIGHT_URL, or http://127.0.0.1:8080)')
    .option('--api-key <key>', 'of the server (default: LOOPWRIGHT_API_KEY)');
}

/** Of a run that can be gone on with. Commander's options have a state, so they are made anew. */
export function resumeOptions(): readonly Option[] {
  return [
    new Option('--checkpoint-every <n>', 'save, to go on from, after so many steps')
      .argParser(wholeNumber(1, 1_000_000))
      .default(10),
    new Option('--resume <run>', 'go on with the run in this folder, after its newest checkpoint'),
    new Option('--allow-changes', 'resume although settings are others now'),
  ];
}
