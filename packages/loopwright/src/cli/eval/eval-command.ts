/** `loopwright eval`: a saved version against what its training began with, on rows that were never trained on. */
import { randomUUID } from 'node:crypto';
import {
  comparePairs,
  counted,
  escapeText,
  type PairedComparison,
  type Problem,
  readProblems,
  regressionOutcome,
  type Task,
} from '@loopwright/loops';
import { checkHeldOut, costOf, type HeldOutCheck, readPrices } from '@loopwright/loops/node';
import { complaint, otherComparison } from '@loopwright/protocol';
import { connect } from '../../connect.js';
import { listenForInterrupt } from '../../interrupt.js';
import { placeOf } from '../../training/resume-place.js';
import type { Console } from '../console.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import type { ServerAddress } from '../sessions.js';
import { loadTask } from '../task-module.js';
import { TaskWatch } from '../task-watch.js';
import { type EvalResults, evalMetrics } from './eval-metrics.js';
import { type ShownSuite, showComparison, showSuites, soFarText, verdictText } from './eval-text.js';
import { measure } from './measure.js';
import { type EvaluatedModel, evaluatedModels, type StartModel } from './models.js';
import { loadRegressionTask, type Suite } from './suites.js';
import { checkTrainedBy } from './trained-by.js';

export interface EvalCommandOptions extends ServerAddress {
  readonly against?: string;
  readonly run?: readonly string[];
  readonly problems?: number;
  readonly leaveOut?: boolean;
  readonly timed: number;
  readonly regression?: readonly string[];
  readonly regressionCommand?: readonly string[];
  /** Points. */
  readonly margin: number;
  readonly prices?: string;
  readonly attach: boolean;
  /** Seconds of a call of a task's code. */
  readonly timeout: number;
  /** Seconds of a run of a regression command. */
  readonly commandTimeout: number;
}

export async function evalCommand(
  { path, version }: { readonly path: string; readonly version: string },
  options: EvalCommandOptions,
  context: CommandContext,
): Promise<void> {
  const { console, settings, exitWith } = context;
  const { against, timed, prices, attach, timeout, commandTimeout } = options;
  const table = prices === undefined ? undefined : await readPrices(prices);
  const { task } = await loadTask(path);
  // Before anything is measured: a wrong name must not be found an hour later.
  const regression = await Promise.all((options.regression ?? []).map((each) => loadRegressionTask(each)));
  using interrupt = listenForInterrupt({ onInterrupt: () => console.note('\nStopping; nothing is attached.') });
  using watch = new TaskWatch(console, { limitMs: timeout * 1000 });
  const { signal } = interrupt;
  const { problems, notes } = await heldOutOf(task, options);
  const url = options.url ?? settings.url;
  const apiKey = options.apiKey ?? (url === undefined ? randomUUID() : settings.apiKey);
  await using service = await connect({
    ...(url === undefined ? {} : { url }),
    ...(apiKey === undefined ? {} : { apiKey }),
  });
  const { candidate, start } = await evaluatedModels(service, version, against);
  const { run: runs = [] } = options;
  const doubts = await checkTrainedBy(service.registry, { version: candidate, runs, place: placeOf(service) });
  const said = [...notes, ...doubts];
  for (const line of said) console.note(`note: ${line}`);
  const note = said.join('; ') || 'held-out rows compared with the run’s';
  const tokenizer = await candidate.sampler.getTokenizer();
  const margin = options.margin / 100;
  const judgedOf = (suites: readonly Suite[]): ShownSuite[] =>
    suites.map((suite) => ({ ...suite, outcome: regressionOutcome(suite.comparison, margin) }));
  const { comparison, suites } = await measure({
    ...{ task, problems, start, candidate, tokenizer, timed, watch, signal, console },
    ...{ regression, commands: options.regressionCommand ?? [] },
    ...{ commandTimeoutMs: commandTimeout * 1000, reach: { url: service.baseUrl, apiKey } },
    onEarlyEnd: (known) => {
      watch.tellFirstFailure();
      const facts = { version: candidate.id, start: start.id, task: task.name };
      if ('comparison' in known) {
        const judged = judgedOf(known.suites);
        console.event({ type: 'evaluation-so-far', ...facts, comparison: known.comparison, suites: judged });
        const verdict = verdictText(known.comparison.right, start.isStart ? 'the start' : start.name);
        show({ task, start, candidate, problems, verdict, judged, margin }, { comparison: known.comparison }, console);
        console.line('A regression suite did not end, so nothing is attached.');
      } else {
        console.event({ type: 'evaluation-so-far', ...facts, ...known });
        console.line(`${soFarText(known)} Nothing is attached.`);
      }
    },
  });
  const judged = judgedOf(suites);
  const pool = pooled(judged);
  const models = { start, candidate };
  const costs = (['start', 'candidate'] as const).map((which) => {
    const used = {
      prefillTokens: comparison.promptTokens[which],
      sampleTokens: comparison.tokens[which],
      trainingTokens: 0,
    };
    return table === undefined ? undefined : costOf(used, models[which].baseModel, table);
  });
  const [startCost, candidateCost] = costs;
  const cost =
    table === undefined || startCost === undefined || candidateCost === undefined
      ? undefined
      : { currency: table.currency, start: 1000 * startCost, candidate: 1000 * candidateCost };
  const results: EvalResults = {
    comparison,
    ...(pool === undefined ? {} : { regression: pool }),
    ...(cost === undefined ? {} : { cost }),
  };
  const verdict = verdictText(comparison.right, start.isStart ? 'the start' : start.name);
  const names = judged.map(({ label, outcome }) => `${label}: ${outcome}`).join(', ');
  const metrics = evalMetrics(results, {
    evaluation: `task ${task.name} against ${start.name}; ${verdict}; ${note}; 95 % interval by ${comparison.right.method}`,
    regression: `against ${start.name}: ${names}; margin ${options.margin} points`,
    isStart: start.isStart,
  });
  if (attach) await service.registry.change(candidate.id, { metrics });
  console.event({
    type: 'evaluation',
    ...{ version: candidate.id, start: start.id, task: task.name, verdict: comparison.right.outcome, heldOut: note },
    ...{ ...results, suites: judged, attached: attach },
  });
  show({ task, start, candidate, problems, verdict, judged, margin }, results, console);
  watch.tellFirstFailure();
  console.hanging('', attachedText({ attach, start, candidate }));
  if (judged.some(({ outcome }) => outcome === 'fell') || comparison.right.outcome === 'worse')
    exitWith(exitCodes.failed);
}

function attachedText({ attach, start, candidate }: Pick<Shown, 'start' | 'candidate'> & { attach: boolean }): string {
  if (!attach) return 'Nothing is attached.';
  const name = escapeText(candidate.name);
  if (start.isStart) return `Attached to ${name}.`;
  return `Attached to ${name}, under ${otherComparison}: ${escapeText(start.name)} is not what it started from, and an approval asks for the comparison with that (without --against: its base model).`;
}

interface Shown {
  readonly task: Task;
  readonly start: StartModel;
  readonly candidate: EvaluatedModel;
  readonly problems: readonly Problem[];
  readonly verdict: string;
  readonly judged: readonly ShownSuite[];
  readonly margin: number;
}

function show(shown: Shown, { comparison, cost }: EvalResults, console: Console): void {
  const { task, start, candidate, problems, verdict, judged, margin } = shown;
  const title = `${escapeText(candidate.name)} against ${escapeText(start.name)}`;
  console.hanging(
    '',
    `${console.paint.bold(title)}: ${escapeText(task.name)}, ${counted(problems.length, 'held-out row')}`,
  );
  console.line();
  showComparison(comparison, console);
  if (cost !== undefined) {
    const { currency, start: before, candidate: after } = cost;
    console.hanging(
      '',
      `1000 answers cost ${before.toFixed(4)} ${currency} of the start, ${after.toFixed(4)} of the version.`,
    );
  }
  console.line();
  const paint = { better: console.paint.green, worse: console.paint.red, 'not-distinguishable': console.paint.yellow };
  console.hanging('', `It is ${paint[comparison.right.outcome](escapeText(verdict))}.`);
  console.line();
  if (judged.length > 0) showSuites(judged, margin, console);
  else console.hanging('', 'No regression suite: --regression TASK or --regression-command CMD names one.');
  console.line();
}

/** Counts of all suites together; shares of the same cases add up, and so do their discordant pairs. */
function pooled(suites: readonly ShownSuite[]): PairedComparison | undefined {
  const [first, ...rest] = suites;
  if (first === undefined) return undefined;
  if (rest.length === 0) return first.comparison;
  const values = suites.map(({ comparison }) => comparison.values);
  return comparePairs(
    values.flatMap(({ start }) => start),
    values.flatMap(({ candidate }) => candidate),
  );
}

/** The rows to be judged by, and what is known of whether they were trained on. */
async function heldOutOf(
  task: Task,
  { run: runs = [], problems: most, leaveOut = false }: EvalCommandOptions,
): Promise<{ readonly problems: readonly Problem[]; readonly notes: readonly string[] }> {
  if (task.heldOut === undefined)
    throw complaint({
      field: 'task.heldOut',
      expected: 'problems that are never trained on',
      got: 'none',
      remedy: 'defineTask({ …, heldOut })',
    });
  const all = await readProblems(task.heldOut, { field: 'task.heldOut' });
  const train = task.train === undefined ? [] : await readProblems(task.train, { field: 'task.train' });
  const check = await checkHeldOut(all, { runs, train });
  if (check.trained.length > 0 && !leaveOut)
    throw complaint({
      field: 'task.heldOut',
      expected: 'rows that were never trained on',
      got: `${check.trained.length} of ${all.length} that were, such as ${check.trained
        .slice(0, 5)
        .map(({ id }) => escapeText(id.slice(0, 40)))
        .join(', ')}`,
      remedy: 'take them out of one of the two, or leave them out here with --leave-out',
    });
  const problems = check.fresh.slice(0, most);
  const validated = problems.filter((problem) => check.validated.includes(problem));
  return { problems, notes: heldOutNotes({ ...check, validated }, runs) };
}

function heldOutNotes(check: HeldOutCheck<Problem>, runs: readonly string[]): string[] {
  const { trained, validated, unknown, fromRuns } = check;
  return [
    ...(runs.length === 0 ? ['not compared with what was trained on: name the run with --run'] : []),
    ...(runs.length > 0 && fromRuns === 0 ? ['not compared with what was trained on: the run kept no prompts'] : []),
    ...(unknown.length === 0 ? [] : [`not compared with ${unknown.join(', ')}: the run was given a hash alone`]),
    ...(trained.length === 0 ? [] : [`${trained.length} rows that were trained on are left out`]),
    ...(validated.length === 0
      ? []
      : [`${validated.length} rows were measured on while it trained: if you chose by them, judge by others`]),
  ];
}
