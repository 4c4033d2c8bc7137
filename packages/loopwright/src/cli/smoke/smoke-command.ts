/** `loopwright smoke`: every part of a task's run once, small and quick, shown as it ends. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { escapeText } from '@loopwright/loops';
import { type SmokePart, smoke } from '@loopwright/loops/node';
import { connect } from '../../connect.js';
import { listenForInterrupt } from '../../interrupt.js';
import type { Console } from '../console.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { loadTask } from '../task-module.js';

export interface SmokeCommandOptions {
  readonly prompts: number;
  readonly steps: number;
  readonly seed: number;
}

export async function smokeCommand(
  path: string,
  { prompts, steps, seed }: SmokeCommandOptions,
  { console, exitWith }: CommandContext,
): Promise<void> {
  const { task } = await loadTask(path);
  using interrupt = listenForInterrupt({ onInterrupt: () => console.note('\nStopping.') });
  const folder = await mkdtemp(join(tmpdir(), 'loopwright-smoke-'));
  try {
    console.line(
      `${console.paint.bold(escapeText(task.name))}: ${prompts} prompts and ${steps} steps of the bundled model`,
    );
    console.line();
    // A server of its own on the processor: bits are compared, and nothing is left behind.
    await using service = await connect({ dataDir: join(folder, 'data'), device: 'cpu' });
    const { outcome, parts } = await smoke(task, {
      ...{ service, folder, prompts, steps, seed, signal: interrupt.signal },
      onPart: (part) => show(part, console),
    });
    console.event({ type: 'smoke', task: task.name, outcome, prompts, steps, seed, parts: parts.map(withoutError) });
    console.line();
    console.line(outcome === 'pass' ? console.paint.green('Passes.') : console.paint.red('Fails.'));
    if (outcome === 'fail') exitWith(exitCodes.failed);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function show(part: SmokePart, console: Console): void {
  const { paint } = console;
  const { name, status, seen, milliseconds } = part;
  const colours = { pass: paint.green, fail: paint.red, 'not-run': paint.yellow };
  const time = status === 'not-run' ? '' : paint.dim(`  ${(milliseconds / 1000).toFixed(1)} s`);
  console.line(`${colours[status](status.padEnd(7))}  ${paint.bold(name)}${time}`);
  console.line(`         ${seen}`);
  if (status === 'fail' && part.error instanceof Error)
    console.line(`         ${paint.dim(escapeText(`${part.error.name}: ${part.error.message}`.slice(0, 500)))}`);
  if (status !== 'pass') console.line(`         ${paint.dim('→')} ${part.remedy}`);
}

/** What threw is the user's own and may quote content: it is for the terminal alone. */
function withoutError(part: SmokePart): object {
  if (part.status !== 'fail') return part;
  const { error: _error, ...rest } = part;
  return rest;
}
