/** `loopwright grader test`: the gate of a grader, shown. */
import { dirname, join, relative, resolve } from 'node:path';
import { escapeText, testGrader } from '@loopwright/loops';
import { gateFileName, writeGate } from '@loopwright/loops/node';
import { listenForInterrupt } from '../../interrupt.js';
import { CodeWatch } from '../code-watch.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { SlowNotes } from '../slow-notes.js';
import { StatusLine } from '../status-line.js';
import { loadTask } from '../task-module.js';
import { showGate } from './show-gate.js';

export interface GraderTestCommandOptions {
  readonly repeats: number;
  readonly concurrency: number;
  /** Seconds. */
  readonly timeout: number;
  readonly stepSeconds?: number;
  readonly labelledOnly?: boolean;
  readonly correctness?: readonly string[];
  readonly out?: string;
}

export async function graderTestCommand(
  path: string,
  { repeats, concurrency, timeout, stepSeconds, labelledOnly, correctness, out }: GraderTestCommandOptions,
  { console, exitWith }: CommandContext,
): Promise<void> {
  const { file, task } = await loadTask(path);
  using interrupt = listenForInterrupt({ onInterrupt: () => console.note('\nStopping.') });
  using status = new StatusLine(console);
  const slow = new SlowNotes(console);
  const target = out === undefined ? join(dirname(file), gateFileName) : resolve(out);
  using watch = new CodeWatch(console, { limitMs: timeout * 1000, who: 'grader', stale: target });
  const startMs = performance.now();
  const { result, outcomes } = await testGrader(task, {
    ...{ repeats, concurrency, timeoutMs: timeout * 1000, signal: interrupt.signal, make: labelledOnly !== true },
    ...(stepSeconds === undefined ? {} : { stepSeconds }),
    ...(correctness === undefined ? {} : { correctness }),
    onCase: ({ label, kind, origin, problem }) => watch.at(`${label} (${kind ?? origin}), ${problem.id}`),
    onProgress: (graded, of) => {
      const secondsEach = (performance.now() - startMs) / 1000 / graded;
      const text = `graded ${graded} of ${of}, ${Number(secondsEach.toPrecision(2))} s each`;
      status.show({ event: { type: 'progress', graded, of }, text });
      slow.show(text);
    },
  });
  status.clear();
  await writeGate(target, result);
  console.event({ type: 'grader-test', file: target, ...result });
  showGate(result, outcomes, console);
  console.line();
  const verdict = result.outcome === 'pass' ? console.paint.green('passes') : console.paint.red('fails');
  console.line(`The grader of ${escapeText(result.task)} ${verdict}. Written to ${relative('.', target)}.`);
  if (result.outcome === 'fail') exitWith(exitCodes.failed);
}
