/** The result of a grader's test, for people. */
import { counted, escapeText, type GateOutcome, type GateResult } from '@loopwright/loops';
import type { Console } from '../console.js';
import { failureText, shortened } from '../failure-text.js';
import { showFindings } from '../findings-text.js';
import { formatTable } from '../text.js';

/** Cases that are printed of a list, and characters of each. */
const [shownCases, shownCharacters] = [12, 160];

export function showGate(result: GateResult, outcomes: readonly GateOutcome[], console: Console): void {
  const { confusion, cases, kinds, components, speed, findings, settings } = result;
  const until = outcomes.some(({ grades }) => grades.length < settings.repeats) ? ', or until it took too long' : '';
  console.line(
    `${counted(cases.labelled, 'labelled completion')} and ${cases.made} made, each graded ${counted(settings.repeats, 'time')}${until}`,
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
    const worths = components.map(({ name, weight, role, worth }) => [
      escapeText(name),
      String(weight),
      role,
      numberText(worth),
    ]);
    for (const text of formatTable(['component', 'weight', 'about', 'worth'], worths)) console.line(`  ${text}`);
  }
  console.line();
  showSpeed(speed, console);
  const wrong = outcomes.filter(({ isRight }) => !isRight);
  showCases({ title: 'Wrong', of: 'wrong', cases: wrong, textOf: wrongText }, console);
  const unstable = outcomes.filter(({ isStable }) => !isStable);
  showCases({ title: 'Not the same again', of: 'that changed', cases: unstable, textOf: unstableText }, console);
  if (findings.length === 0) return;
  console.line();
  showFindings(findings, console);
}

function showSpeed({ alone, together, callsPerStep, ...speed }: GateResult['speed'], console: Console): void {
  const { secondsAdded, secondsFor10Percent, parallelism } = speed;
  const atOnce =
    together === undefined ? '' : `, ${secondsText(secondsAdded.together ?? 0)} with ${together.concurrency} at once`;
  console.table([
    ['one call', `p50 ${msText(alone.p50Ms)}, p95 ${msText(alone.p95Ms)} (n = ${alone.calls})`],
    ...(together === undefined
      ? []
      : [
          [
            'at once',
            `${numberText(together.callsPerSecond)} calls a second, ${together.concurrency} at once${overlapText(together.overlap)}`,
          ] as const,
        ]),
    ['a step', `${callsPerStep} calls add ${secondsText(secondsAdded.alone)} one after another${atOnce}`],
    ['under 10 %', `of a step whose rest takes ${secondsText(secondsFor10Percent)} or more`],
    parallelism === undefined
      ? ['needed', '--step-seconds says how many at once keep it under 10 %']
      : ['needed', neededText(parallelism, together?.overlap)],
  ]);
}

type Speed = GateResult['speed'];
type Overlap = NonNullable<Speed['together']>['overlap'];

function overlapText(overlap: Overlap): string {
  if (overlap === undefined) return '';
  const waits = overlap.isSerial ? ': the processor, or one place that they share, takes them one by one' : '';
  return `, ${numberText(overlap.speedUp, 2)} × as fast as alone${waits}`;
}

function neededText(
  { stepSeconds, neededSpeedUp, needed }: NonNullable<Speed['parallelism']>,
  overlap: Overlap,
): string {
  const under = `to stay under 10 % of a step whose rest takes ${secondsText(stepSeconds)}`;
  if (needed !== undefined) return `${needed} at once, by what was measured, ${under}`;
  const why = overlap === undefined ? 'not measured with several at once' : 'which calls at once don’t give';
  return `${numberText(neededSpeedUp, 2)} × as fast as alone, ${under}: ${why}`;
}

function msText(ms: number): string {
  return `${ms < 10 ? ms.toFixed(2) : ms.toFixed(0)} ms`;
}

/** At least a tenth of a millisecond: less is no wait. */
function secondsText(seconds: number): string {
  return seconds < 0.0001 ? 'under 0.1 ms' : seconds < 0.1 ? msText(seconds * 1000) : `${numberText(seconds, 2)} s`;
}

function numberText(value: number, digits = 3): string {
  return String(Number(value.toPrecision(digits)));
}

interface CaseList {
  readonly title: string;
  /** Of the title of a list that is cut off, such as `wrong`. */
  readonly of: string;
  readonly cases: readonly GateOutcome[];
  /** @param told reasons that were shown already */
  readonly textOf: (outcome: GateOutcome, told: Set<string>) => string;
}

function showCases({ title, of, cases, textOf }: CaseList, console: Console): void {
  if (cases.length === 0) return;
  console.line();
  const cut = `${shownCases} of ${cases.length} ${of}`;
  console.line(console.paint.bold(cases.length > shownCases ? cut : title));
  const told = new Set<string>();
  for (const each of byTurns(cases).slice(0, shownCases)) console.hanging('  ', textOf(each, told));
}

/** The first of each kind, then the second of each, so that a list that is cut off has all kinds. */
function byTurns(outcomes: readonly GateOutcome[]): GateOutcome[] {
  const kinds = new Map<string, GateOutcome[]>();
  for (const outcome of outcomes) {
    const { label, kind = '' } = outcome.case;
    const own = kinds.get(`${label} ${kind}`) ?? [];
    kinds.set(`${label} ${kind}`, [...own, outcome]);
  }
  const lists = [...kinds.values()];
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, i) => lists.flatMap((list) => list[i] ?? [])).flat();
}

function wrongText(outcome: GateOutcome, told: Set<string>): string {
  return `${placeOf(outcome)}: ${gradeText(outcome.grade, told)} for “${shownText(outcome)}”`;
}

function unstableText(outcome: GateOutcome, told: Set<string>): string {
  return `${placeOf(outcome)}: ${outcome.grades.map((grade) => gradeText(grade, told)).join(', then ')}`;
}

function placeOf({ case: { label, kind, origin, problem } }: GateOutcome): string {
  return `${label} (${escapeText(kind ?? origin)}), ${escapeText(problem.id)}`;
}

/** With the reason of a failure, once: its message may quote the answer, which is shown here anyway. */
function gradeText(grade: GateOutcome['grade'], told: Set<string>): string {
  if ('reward' in grade) return `reward ${grade.reward}`;
  if (grade.status !== 'grader_error') return grade.status;
  const reason = failureText(grade.error);
  if (told.has(reason)) return grade.status;
  told.add(reason);
  return `${grade.status} (${reason})`;
}

function shownText({ case: { completion } }: GateOutcome): string {
  const text = typeof completion === 'string' ? completion : completion.map((turn) => turn.text).join(' ⏎ ');
  return shortened(escapeText(text.slice(0, shownCharacters + 1)), shownCharacters);
}
