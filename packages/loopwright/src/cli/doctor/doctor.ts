/** `loopwright doctor`: what is missing or slow here, and how to mend it. */
import { join, resolve } from 'node:path';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { checkEverything } from './checks.js';

export interface DoctorOptions {
  readonly port: number;
  readonly data?: string;
}

/** Exit code 1 when something is missing; slowness alone is none. */
export async function doctor(
  { port, data }: DoctorOptions,
  { console, settings, exitWith }: CommandContext,
): Promise<void> {
  const dataDir = resolve(data ?? join(settings.home, 'data'));
  const checks = await checkEverything({ settings, dataDir, port });
  const { paint } = console;
  const marks = {
    ok: paint.green('ok'.padEnd(7)),
    slow: paint.yellow('slow'.padEnd(7)),
    missing: paint.red('missing'),
  };
  const width = Math.max(...checks.map(({ name }) => name.length));
  for (const check of checks) {
    console.event({ type: 'check', ...check });
    console.line(`${marks[check.status]}  ${check.name.padEnd(width)}  ${check.found}`);
    if (check.remedy !== undefined) console.line(`${' '.repeat(width + 11)}${paint.dim('→')} ${check.remedy}`);
  }
  const missing = checks.filter(({ status }) => status === 'missing').length;
  console.line();
  console.line(
    missing === 0 ? 'Nothing is missing: loopwright demo should run.' : `${missing} missing: see the lines with →.`,
  );
  if (missing > 0) exitWith(exitCodes.failed);
}
