/** `loopwright smoke`: every part of a task's run once, small and quick, shown as it ends. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { escapeText } from '@loopwright/loops';
import { type SmokePart, type SmokeProgress, smoke } from '@loopwright/loops/node';
import { connect } from '../../connect.js';
import { listenForInterrupt } from '../../interrupt.js';
import { CodeWatch } from '../code-watch.js';
import type { Console } from '../console.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { SlowNotes } from '../slow-notes.js';
import { StatusLine } from '../status-line.js';
import { loadTask } from '../task-module.js';
import { temporaryFolder } from './temporary-folder.js';

export interface SmokeCommandOptions {
  readonly prompts: number;
  readonly steps: number;
  readonly seed: number;
}

/** A part computes now and then, for a second at most: who holds the thread so long never gives it back. */
const heldMs = 30_000;

export async function smokeCommand(
  path: string,
  { prompts, steps, seed }: SmokeCommandOptions,
  { console, exitWith }: CommandContext,
): Promise<void> {
  const { task } = await loadTask(path);
  using interrupt = listenForInterrupt({ onInterrupt: () => console.note('\nStopping.') });
  const folder = await temporaryFolder();
  try {
    using status = new StatusLine(console);
    const slow = new SlowNotes(console);
    using watch = new CodeWatch(console, { limitMs: heldMs, who: 'task', stale: folder });
    console.line(
      `${console.paint.bold(escapeText(task.name))}: ${prompts} prompts and ${steps} steps of the bundled model`,
    );
    console.line();
    // A server of its own on the processor: bits are compared, and nothing is left behind.
    await using service = await connect({ dataDir: join(folder, 'data'), device: 'cpu' });
    const { outcome, parts } = await smoke(task, {
      ...{ service, folder, prompts, steps, seed, signal: interrupt.signal },
      onPart: (part) => {
        status.clear();
        show(part, console);
      },
      onProgress: (progress) => {
        const text = progressText(progress);
        watch.at(text);
        status.show({ event: { type: 'progress', ...progress }, text });
        slow.show(text);
      },
    });
    console.event({ type: 'smoke', task: task.name, outcome, prompts, steps, seed, parts: parts.map(withoutError) });
    console.line();
    console.line(outcome === 'pass' ? console.paint.green('Passes.') : console.paint.red('Fails.'));
    if (outcome === 'fail') exitWith(exitCodes.failed);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function progressText({ part, done, of }: SmokeProgress): string {
  return of === undefined ? part : `${part}: ${done} of ${of}`;
}

function show(part: SmokePart, console: Console): void {
  const { paint } = console;
  const { name, status, seen, milliseconds } = part;
  const colours = { pass: paint.green, fail: paint.red, 'not-run': paint.yellow };
  const time = status === 'not-run' ? '' : paint.dim(`  ${(milliseconds / 1000).toFixed(1)} s`);
  console.line(`${colours[status](status.padEnd(7))}  ${paint.bold(name)}${time}`);
  const indent = ' '.repeat(9);
  console.hanging(indent, status === 'not-run' ? `${seen}: ${part.remedy}` : seen);
  if (status !== 'fail') return;
  if (part.error instanceof Error)
    console.hanging(indent, escapeText(`${part.error.name}: ${part.error.message}`.slice(0, 500)));
  console.hanging(`${indent}${paint.dim('→')} `, part.remedy);
}

/** What threw is the user's own and may quote content: it is for the terminal alone. */
function withoutError(part: SmokePart): object {
  if (part.status !== 'fail') return part;
  const { error: _error, ...rest } = part;
  return rest;
}
