/** `loopwright samples`: what a model wrote in a run, at its start, in its middle and at its end; and a sign-off by who looked at it. */
import { counted } from '@loopwright/loops';
import { addSignOff, type RunSample, readRun, readSignOffs, type SignOff } from '@loopwright/loops/node';
import { complaint } from '@loopwright/protocol';
import type { CommandContext } from '../context.js';
import { tellDamage } from '../runs/damage.js';
import { folderText } from '../runs/text.js';
import { comparedSamples, markedSamples, markedSteps } from './compared-samples.js';
import { rangesText } from './ranges-text.js';
import { type Shortened, showCompared, showMarked, showTokens } from './samples-text.js';
import { signOffText } from './sign-off-text.js';

export interface SamplesCommandOptions {
  readonly prompts: number;
  readonly step?: number;
  readonly full?: boolean;
  readonly tokens?: boolean;
  readonly signOff?: string;
  readonly note?: string;
}

/** Steps beside each other: the start, the middle, the end. */
const columns = 3;
/** Lines of an answer that are shown unless all are asked for; and the width where the output is no terminal. */
const [someLines, plainWidth] = [8, 100];

export async function samplesCommand(
  folder: string,
  { prompts, step, full = false, tokens = false, signOff, note }: SamplesCommandOptions,
  { console }: CommandContext,
): Promise<void> {
  if (note !== undefined && signOff === undefined)
    throw complaint({ field: 'note', expected: 'a note beside --sign-off', got: 'one alone' });
  const run = await readRun(folder);
  const problems = step === undefined ? await comparedSamples(run.folder, { problems: prompts, columns }) : [];
  const marked = await markedSamples(run.folder, step);
  const seen: RunSample[] = [...problems.flatMap(({ samples }) => samples), ...marked];
  if (seen.length === 0) throw await nothingSeen(run.folder, step);
  const size = { width: console.stdout.columns ?? plainWidth, lines: full ? Number.POSITIVE_INFINITY : someLines };
  for (const sample of seen) console.event({ ...sample, type: 'sample', of: sample.type });
  const shortened = { answers: 0, questions: 0 };
  const add = ({ answers, questions }: Shortened): void => {
    shortened.answers += answers;
    shortened.questions += questions;
  };
  if (problems.length > 0) {
    const kind = problems[0]?.samples[0]?.type;
    const of = kind === 'fixed' ? 'fixed' : `of ${kind === 'train' ? 'training' : 'validation'}`;
    console.line(
      `${console.paint.bold(folderText(run))}: ${counted(problems.length, 'prompt')}, ${of}, at up to ${columns} steps`,
    );
    add(showCompared(problems, console, size));
  }
  if (marked.length > 0) {
    if (problems.length > 0) console.line();
    console.line(console.paint.bold(`Best, worst and longest of step ${marked[0]?.step}`));
    add(showMarked(marked, console, size));
  }
  if (tokens) showTokens(seen, console, size);
  const isWhole = console.json || shortened.answers + shortened.questions === 0; // an event holds all of its sample
  if (!isWhole) {
    console.line();
    console.line(shortenedText(shortened, seen.length));
  }
  await showSignOffs(run.folder, { signOff, note, seen, isWhole }, console);
  await tellDamage(run, console);
}

async function nothingSeen(folder: string, step: number | undefined): Promise<Error> {
  const kept = step === undefined ? [] : await markedSteps(folder);
  if (step !== undefined && kept.length > 0)
    return complaint({
      code: 'not_found',
      field: 'step',
      expected: `a step of which samples are kept: ${rangesText(kept)}`,
      got: String(step),
      remedy: 'name one of these',
    });
  return complaint({
    code: 'not_found',
    field: step === undefined ? folder : 'step',
    expected: step === undefined ? 'a run that kept samples' : 'a step of which samples are kept',
    got: step === undefined ? 'one without' : `step ${step} of a run without`,
    remedy: 'hand run.onStep and run.onFixedSamples to the loop, and leave samples.groupsPerStep above 0',
  });
}

/** `3 of 5 answers and 1 question are shown in part: --full shows all.` */
function shortenedText({ answers, questions }: Shortened, of: number): string {
  const parts = [
    ...(answers === 0 ? [] : [`${answers} of ${counted(of, 'answer')}`]),
    ...(questions === 0 ? [] : [counted(questions, 'question')]),
  ];
  return `${parts.join(' and ')} ${answers + questions === 1 ? 'is' : 'are'} shown in part: --full shows all.`;
}

interface SignOffsShown {
  readonly signOff: string | undefined;
  readonly note: string | undefined;
  readonly seen: readonly RunSample[];
  readonly isWhole: boolean;
}

async function showSignOffs(
  folder: string,
  { signOff, note, seen, isWhole }: SignOffsShown,
  console: CommandContext['console'],
): Promise<void> {
  const earlier = await readSignOffs(folder);
  const said: SignOff[] =
    signOff === undefined
      ? []
      : [await addSignOff(folder, { name: signOff, seen, isWhole, ...(note === undefined ? {} : { note }) })];
  for (const each of [...earlier, ...said]) console.event({ type: 'sign-off', ...each });
  console.line();
  for (const each of [...earlier, ...said]) console.line(`Signed off by ${signOffText(each)}`);
  if (earlier.length + said.length === 0)
    console.line('Nobody has signed it off: --sign-off "your name" says that you looked at it.');
}
