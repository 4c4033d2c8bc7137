/** What to type to go on with a run: the command of this process, with `--resume`. */
import { basename, relative, resolve } from 'node:path';
import { escapeText } from '@loopwright/loops';
import { ownCommand, type RunRecord } from '@loopwright/loops/node';
import { shellText } from '../shell-text.js';

/** As `npx tsx` starts a process. */
const tsxArgument = /[/\\]tsx[/\\]dist[/\\]\w+\.[cm]?js$/;
/** As `npx loopwright` starts one. */
const ownProgram = /[/\\]node_modules[/\\]\.bin[/\\]loopwright$/;

/** In the current folder, to be pasted into a shell. Secrets of the command line are left out. */
export function goOnCommand(folder: string, { cwd, argv }: RunRecord['command'] = ownCommand()): string {
  const here = (path: string): string => {
    const inside = relative(cwd, path);
    return inside === '' ? '.' : inside.startsWith('..') ? path : inside;
  };
  const [executable = 'node', ...args] = argv;
  const node = basename(executable) === 'node' ? 'node' : executable;
  const script = args.findIndex(
    (arg, i) => !arg.startsWith('-') && !['--require', '--import', '-r'].includes(args[i - 1] ?? ''),
  );
  const [flags, [program = '', ...own]] = script < 0 ? [args, []] : [args.slice(0, script), args.slice(script)];
  const isTsx = flags.some((flag) => tsxArgument.test(flag));
  const runner = isTsx ? ['npx', 'tsx'] : [node, ...flags];
  const start = ownProgram.test(program) ? ['npx', 'loopwright'] : [...runner, here(resolve(cwd, program))];
  const kept = own.filter((arg, i) => arg !== '--resume' && own[i - 1] !== '--resume' && !arg.startsWith('--resume='));
  return escapeText(shellText([...start, ...kept, '--resume', here(folder)]));
}
