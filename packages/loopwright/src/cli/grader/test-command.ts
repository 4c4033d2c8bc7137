/** `loopwright grader test`: the gate of a grader, shown. */
import { dirname, join, relative, resolve } from 'node:path';
import { type BadKind, escapeText, type GateOutcome, type GateResult, testGrader } from '@loopwright/loops';
import { gateFileName, writeGate } from '@loopwright/loops/node';
import { listenForInterrupt } from '../../interrupt.js';
import type { Console } from '../console.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { showFindings } from '../findings-text.js';
import { SlowNotes } from '../slow-notes.js';
import { StatusLine } from '../status-line.js';
import { loadTask } from '../task-module.js';
import { formatTable } from '../text.js';

export interface GraderTestCommandOptions {
  readonly repeats: number;
  readonly concurrency: number;
  /** Seconds. */
  readonly timeout: number;
  readonly stepSeconds?: number;
  readonly without?: readonly BadKind[];
  readonly labelledOnly?: boolean;
  readonly correctness?: readonly string[];
  readonly out?: string;
}

/** Wrong cases that are printed, and characters of each. */
const [shownCases, shownCharacters] = [12, 160];

export async function graderTestCommand(
  path: string,
  { repeats, concurrency, timeout, stepSeconds, without, labelledOnly, correctness, out }: GraderTestCommandOptions,
  { console, exitWith }: CommandContext,
): Promise<void> {
  const { file, task } = await loadTask(path);
  using interrupt = listenForInterrupt({ onInterrupt: () => console.note('\nStopping.') });
  using status = new StatusLine(console);
  const slow = new SlowNotes(console);
  const startMs = performance.now();
  const { result, outcomes } = await testGrader(task, {
    ...{ repeats, concurrency, timeoutMs: timeout * 1000, signal: interrupt.signal, make: labelledOnly !== true },
    ...(stepSeconds === undefined ? {} : { stepSeconds }),
    ...(without === undefined ? {} : { without }),
    ...(correctness === undefined ? {} : { correctness }),
    onProgress: (graded, of) => {
      const secondsEach = (performance.now() - startMs) / 1000 / graded;
      const text = `graded ${graded} of ${of}, ${secondsEach.toFixed(1)} s each: waiting for the grader`;
      status.show({ event: { type: 'progress', graded, of }, text });
      slow.show(text);
    },
  });
  status.clear();
  const target = out === undefined ? join(dirname(file), gateFileName) : resolve(out);
  await writeGate(target, result);
  console.event({ type: 'grader-test', file: target, ...result });
  show(result, outcomes, console);
  console.line();
  const verdict = result.outcome === 'pass' ? console.paint.green('passes') : console.paint.red('fails');
  console.line(`The grader of ${escapeText(result.task)} ${verdict}. Written to ${relative('.', target)}.`);
  if (result.outcome === 'fail') exitWith(exitCodes.failed);
}

function show(result: GateResult, outcomes: readonly GateOutcome[], console: Console): void {
  const { confusion, cases, kinds, components, speed, findings } = result;
  const { paint } = console;
  console.line(
    `${cases.labelled} labelled completions and ${cases.made} made, each graded ${result.settings.repeats} times`,
  );
  console.line();
  const rows = [
    ['good', String(confusion.goodAccepted), String(confusion.goodRejected)],
    ['bad', String(confusion.badAccepted), String(confusion.badRejected)],
  ];
  for (const text of formatTable(['', 'taken for right', 'not'], rows)) console.line(`  ${text}`);
  if (confusion.failed > 0) console.line(`  ${confusion.failed} could not be graded`);
  console.line();
  const kindRows = kinds.map(({ kind, label, cases: count, wrong }) => [
    escapeText(kind),
    label,
    String(count),
    String(wrong),
  ]);
  for (const text of formatTable(['kind', 'label', 'cases', 'wrong'], kindRows)) console.line(`  ${text}`);
  if (components.length > 0) {
    console.line();
    const worths = components.map(({ name, weight, role, worth }) => [name, String(weight), role, String(worth)]);
    for (const text of formatTable(['component', 'weight', 'about', 'worth'], worths)) console.line(`  ${text}`);
  }
  console.line();
  showSpeed(speed, console);
  const wrong = outcomes.filter(({ isRight }) => !isRight);
  if (wrong.length > 0) {
    console.line();
    console.line(paint.bold(wrong.length > shownCases ? `The first ${shownCases} of ${wrong.length} wrong` : 'Wrong'));
    for (const each of wrong.slice(0, shownCases)) console.line(`  ${wrongText(each)}`);
  }
  if (findings.length === 0) return;
  console.line();
  showFindings(findings, console);
}

function showSpeed(
  { alone, together, callsPerStep, secondsAdded, secondsFor10Percent, parallelism }: GateResult['speed'],
  console: Console,
): void {
  const ms = (value: number): string => (value < 10 ? value.toFixed(2) : value.toFixed(0));
  const s = (value: number): string => `${Number(value.toPrecision(2))} s`;
  console.table([
    ['one call', `p50 ${ms(alone.p50Ms)} ms, p95 ${ms(alone.p95Ms)} ms (n = ${alone.calls})`],
    ...(together === undefined
      ? []
      : [
          [
            'together',
            `${together.callsPerSecond.toFixed(0)} calls a second, ${together.concurrency} at once`,
          ] as const,
        ]),
    ['a step', `${callsPerStep} calls`],
    [
      'adds',
      `${s(secondsAdded.alone)} one after another${secondsAdded.together === undefined ? '' : `, ${s(secondsAdded.together)} together`}`,
    ],
    ['10 % of', `a step whose rest takes ${s(secondsFor10Percent)}`],
    ...(parallelism === undefined
      ? []
      : [['needed', `${parallelism.needed} at once, where the rest takes ${s(parallelism.stepSeconds)}`] as const]),
  ]);
}

function wrongText({ case: each, grade }: GateOutcome): string {
  const { completion } = each;
  const text = typeof completion === 'string' ? completion : completion.map((turn) => turn.text).join(' ⏎ ');
  const shown = escapeText(text.length > shownCharacters ? `${text.slice(0, shownCharacters)}…` : text);
  const worth = 'reward' in grade ? `reward ${grade.reward}` : grade.status;
  return `${each.label} (${escapeText(each.kind ?? each.origin)}), ${escapeText(each.problem.id)}: ${worth} for “${shown}”`;
}
