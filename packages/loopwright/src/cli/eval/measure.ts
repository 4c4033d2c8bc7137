/** Both models on the held-out rows and on all suites, followed while it goes on; what ends it early doesn't take along what is known by then. */
import { compareModels, type ModelComparison, type PairedComparison, type Problem, type Task } from '@loopwright/loops';
import type { Tokenizer } from '@loopwright/text';
import type { Console } from '../console.js';
import { SlowNotes } from '../slow-notes.js';
import { StatusLine } from '../status-line.js';
import type { TaskWatch } from '../task-watch.js';
import type { EvaluatedModel } from './models.js';
import { commandSuite, type RegressionTask, type ServerReach, type Suite, taskSuite } from './suites.js';

export interface MeasureOptions {
  readonly task: Task;
  readonly problems: readonly Problem[];
  readonly start: EvaluatedModel;
  readonly candidate: EvaluatedModel;
  readonly tokenizer: Tokenizer;
  /** Rows that are answered alone. */
  readonly timed: number;
  readonly regression: readonly RegressionTask[];
  readonly commands: readonly string[];
  /** Milliseconds of one run of a command. */
  readonly commandTimeoutMs: number;
  readonly reach: ServerReach;
  readonly watch: TaskWatch;
  readonly signal: AbortSignal;
  readonly console: Console;
  /** Told before the error is thrown that ends it early. */
  readonly onEarlyEnd: (known: Known) => void;
}

export interface Measured {
  readonly comparison: ModelComparison;
  readonly suites: readonly Suite[];
}

/** What had been measured: all rows and some suites, or of some rows how many were right. */
export type Known =
  | Measured
  | { readonly done: number; readonly of: number; readonly right: PairedComparison | undefined };

export async function measure(options: MeasureOptions): Promise<Measured> {
  const { task, problems, start, candidate, tokenizer, timed, watch, signal, console, onEarlyEnd } = options;
  using status = new StatusLine(console);
  const slow = new SlowNotes(console);
  const tell = (text: string, event: object): void => {
    status.show({ event: { type: 'progress', ...event }, text });
    slow.show(text);
  };
  const suites: Suite[] = [];
  let known: Known = { done: 0, of: problems.length, right: undefined };
  try {
    const comparison = await compareModels({
      ...{ environment: watch.over(task).environment, problems, tokenizer, signal, timed },
      ...{ start: start.sampler, candidate: candidate.sampler },
      ...(task.settings === undefined ? {} : { settings: task.settings }),
      onProgress: (done, of, right) => {
        known = { done, of, right };
        const next = done === of && timed > 0 ? ', and now for the time that an answer takes' : '';
        tell(`${done} of ${of} problems${next}`, { done, of });
      },
    });
    known = { comparison, suites };
    for (const suite of options.regression)
      suites.push(
        await taskSuite(
          { ...suite, task: watch.over(suite.task) },
          {
            ...{ start, candidate, tokenizer, signal },
            onProgress: (done, of) =>
              tell(`suite ${suite.task.name}: ${done} of ${of} problems`, { suite: suite.task.name, done, of }),
          },
        ),
      );
    for (const [i, command] of options.commands.entries()) {
      const label = `command ${i + 1}`;
      suites.push(
        await commandSuite(command, {
          ...{ start, candidate, signal, label, reach: options.reach, timeoutMs: options.commandTimeoutMs },
          onProgress: (role, cases, seconds) =>
            tell(`${label} for the ${role}: ${cases} cases after ${seconds} s`, { suite: label, role, done: cases }),
        }),
      );
    }
    return { comparison, suites };
  } catch (error) {
    status.clear();
    onEarlyEnd(known);
    throw error;
  }
}
