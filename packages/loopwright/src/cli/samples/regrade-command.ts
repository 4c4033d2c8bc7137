/** `loopwright samples RUN --regrade TASK`: what another version of the grader makes of stored answers. */
import { counted, escapeText, isAnswerEnvironment, readProblems, truncateText } from '@loopwright/loops';
import {
  type AdvantageSign,
  graderVersion,
  type RegradedSample,
  type Regrading,
  type RunSample,
  readRun,
  regradeSamples,
} from '@loopwright/loops/node';
import { complaint } from '@loopwright/protocol';
import { listenForInterrupt } from '../../interrupt.js';
import { CodeWatch } from '../code-watch.js';
import type { Console } from '../console.js';
import type { CommandContext } from '../context.js';
import { failureText } from '../failure-text.js';
import { tellDamage } from '../runs/damage.js';
import { folderText, numberText } from '../runs/text.js';
import { StatusLine } from '../status-line.js';
import { loadTask } from '../task-module.js';
import { formatTable } from '../text.js';
import { RegradingFailures } from './regrading-failures.js';
import { textOf } from './samples-text.js';

/** Changed answers that are printed; all are events. */
const shown = 20;
const plainWidth = 100;

export interface RegradeCommandOptions {
  readonly task: string;
  readonly concurrency: number;
  /** Seconds. */
  readonly timeout: number;
}

export async function regradeCommand(
  folder: string,
  { task: path, concurrency, timeout }: RegradeCommandOptions,
  { console }: CommandContext,
): Promise<void> {
  const run = await readRun(folder);
  const { file, task } = await loadTask(path);
  const { environment } = task;
  if (!isAnswerEnvironment(environment))
    throw complaint({
      field: 'regrade',
      expected: 'a task of one answer',
      got: 'one of several turns, whose episodes are judged while they are played',
    });
  const version = await graderVersion(file);
  const before = run.record.grader?.sha256;
  using interrupt = listenForInterrupt({ onInterrupt: () => console.note('\nStopping.') });
  using status = new StatusLine(console);
  const timeoutMs = timeout * 1000;
  using watch = new CodeWatch(console, { limitMs: timeoutMs, who: 'grader' });
  const listed = await Promise.all(
    [task.train, task.heldOut].map((source) => (source === undefined ? [] : readProblems(source))),
  );
  const changed: RegradedSample[] = [];
  let left = 0;
  const failures = new RegradingFailures();
  await tellDamage(run, console);
  const regrading = await regradeSamples(run.folder, {
    ...{ environment, problems: listed.flat(), concurrency, timeoutMs, signal: interrupt.signal },
    onAnswer: ({ step, problem, member }) => watch.at(`answer ${member} to ${problem} of step ${step}`),
    onProgress: (graded) => status.show({ event: { type: 'progress', graded }, text: `graded ${graded}` }),
    onChange: (each) => {
      const { sample, ...rest } = each;
      console.event({ type: 'regraded', ...placeOf(sample), ...rest });
      if (changed.length < shown) changed.push(each);
      else left += 1;
    },
    onFailure: (failure) => {
      const { sample, error, ...rest } = failure;
      console.event({ type: 'regrade-failed', ...placeOf(sample), ...rest, cause: failureText(error) });
      failures.add(failure);
    },
  });
  status.clear();
  const grader = { before: before ?? null, now: version.sha256 };
  const names = { before: run.record.task ?? null, now: task.name };
  console.event({ type: 'regrading', run: run.folder, task: names, grader, ...regrading });
  if (names.before !== null && names.before !== names.now)
    console.line(
      `Another task: the run’s is ${escapeText(names.before)}, this one ${escapeText(names.now)}. A change may be the task’s, not the grader’s.`,
    );
  show(regrading, { changed, left, failures }, console);
  console.line();
  console.table([
    ['run', folderText(run)],
    ['grader then', before === undefined ? 'not recorded: openRun({ task }) keeps its version' : before.slice(0, 16)],
    ['grader now', `${version.sha256.slice(0, 16)}${version.sha256 === before ? ', the same' : ''}`],
  ]);
}

function placeOf({ type, step, problem, member }: RunSample) {
  return { of: type, step, problem, member };
}

interface Changed {
  /** That are shown. */
  readonly changed: readonly RegradedSample[];
  readonly left: number;
  readonly failures: RegradingFailures;
}

function show(regrading: Regrading, { changed, left, failures }: Changed, console: Console): void {
  const { graded, unknown, episodes, failed, compared, flipped, gained, lost } = regrading;
  console.line(`${counted(graded - failed, 'answer')} graded again: ${regrading.changed} have another reward now.`);
  for (const line of failures.lines()) console.line(line);
  console.line();
  console.table([
    ['advantages', `${compared} compared, of groups that are stored whole`],
    ['flipped', `${flipped}: from above the mean of the group to below, or the other way round`],
    ['gained', `${gained}: from 0 to something`],
    ['lost', `${lost}: to 0`],
    ...(unknown > 0
      ? [['unknown', `${unknown}: their problems were not kept, and the task doesn’t list them`] as const]
      : []),
    ...(episodes > 0 ? [['episodes', `${episodes}: judged while they are played`] as const] : []),
  ]);
  if (changed.length === 0) return;
  console.line();
  const rows = changed.map(({ sample, reward, status, advantage }) => [
    `${sample.step}`,
    sample.type,
    truncateText(escapeText(sample.problem), 24),
    `${sample.member}`,
    rewardText(reward.before, sample.status),
    rewardText(reward.after, status),
    advantage === undefined ? '' : `${signText(advantage.before)} → ${signText(advantage.after)}`,
    escapeText(textOf(sample)),
  ]);
  const head = ['step', 'of', 'problem', 'answer', 'then', 'now', 'advantage', 'text'];
  const width = console.stdout.columns ?? plainWidth;
  for (const line of formatTable(head, rows)) console.line(truncateText(line, width));
  if (left > 0) console.line(`… and ${left} more; --json tells all`);
}

function rewardText(reward: number | undefined, status: string): string {
  return reward === undefined ? escapeText(status) : numberText(reward);
}

function signText(sign: AdvantageSign): string {
  return { '1': '+', '0': '0', '-1': '−' }[`${sign}`];
}
