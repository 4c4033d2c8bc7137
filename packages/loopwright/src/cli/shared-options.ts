/** Options that many commands have. */
import type { Command } from 'commander';

export function withJson(command: Command): Command {
  return command.option('--json', 'one JSON value a line on the standard output');
}

/** Of commands that ask a running server. */
export function withServer(command: Command): Command {
  return withJson(command)
    .option('--url <url>', 'of the server (default: LOOPWRIGHT_URL, or http://127.0.0.1:8080)')
    .option('--api-key <key>', 'of the server (default: LOOPWRIGHT_API_KEY)');
}
