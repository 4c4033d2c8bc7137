/** A run that is being written. */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import { counted } from '../counted.js';
import { errorText } from '../error-text.js';
import type { GateDecision } from '../grader-gate/require-gate.js';
import type { Alarm } from '../guard/alarm.js';
import type { GuardedTracker } from '../tracking/guarded.js';
import { lineFields } from '../tracking/metrics-line.js';
import type { TrackedStep, Tracker } from '../tracking/tracker.js';
import { type Evaluation, validationMetrics } from '../training/evaluate.js';
import type { Metrics } from '../training/grpo-metrics.js';
import type { Checkpoint } from './checkpoint-file.js';
import { JsonlFile } from './jsonl-file.js';
import type { MetProblems } from './met-problems.js';
import { alarmsName, endingAlarm } from './run-alarms.js';
import { type RunRecord, type RunUsage, writeRecord } from './run-record.js';
import { type RunSample, type SampledRollouts, samplesOf } from './run-samples.js';
import { type UsageMeter, usageMetrics } from './run-usage.js';
import type { RunWarnings } from './run-warnings.js';

/** Which samples are kept. */
export interface KeptSamples {
  /** Groups of a step, from the first; default all. The best, the worst and the longest of a step are kept besides. 0 keeps none. */
  readonly groupsPerStep: number;
  /** Steps between those whose groups are kept; default 1. */
  readonly everySteps: number;
}

/** A step of any of the loops. */
export interface LoopStep {
  readonly type: string;
  readonly step: number;
  readonly metrics: Metrics;
  readonly groups?: readonly SampledRollouts[];
  readonly alarms?: readonly Alarm[];
  readonly graderGate?: GateDecision;
}

/** A measurement of any of the loops. */
export interface LoopValidation {
  readonly step: number;
  readonly metrics: Metrics;
  readonly evaluation?: JudgedProblems | undefined;
}

/** What was found of problems that aren't trained on, be it by answers or by episodes. */
export type JudgedProblems = Pick<
  Evaluation<
    never,
    {
      readonly problem: SampledRollouts['problem'];
      readonly prompt?: readonly number[];
    } & SampledRollouts['rollouts'][number]
  >,
  'answers'
>;

/** @internal */
export interface RunParts {
  readonly folder: string;
  readonly record: RunRecord;
  readonly checkpoint: Checkpoint | undefined;
  readonly changes: readonly string[];
  readonly lock: AsyncDisposable;
  /** The run can't do without it. */
  readonly log: Tracker;
  readonly trackers: readonly GuardedTracker[];
  readonly warnings: RunWarnings;
  readonly meter: UsageMeter | undefined;
  readonly met: MetProblems;
  readonly keep: KeptSamples;
  readonly tokenizer: Tokenizer | undefined;
  readonly now: () => number;
}

export const samplesName = 'samples.jsonl';

/** Writes a run folder. Get one from `openRun` or `withRun`. */
export class Run implements AsyncDisposable {
  readonly folder: string;
  readonly #parts: RunParts;
  #record: RunRecord;
  #samples: JsonlFile | undefined;
  #alarms: JsonlFile | undefined;
  /** Kept in this process, of which no tracker was told. */
  #untold: Alarm[] = [];
  /** Of those that were kept in this process, name and step. */
  readonly #keptAlarms = new Set<string>();
  #usage: readonly RunUsage[] | undefined;
  #tokenizer: Tokenizer | undefined;
  #isOpen = true;

  /** @internal use `openRun` */
  constructor(parts: RunParts) {
    this.folder = parts.folder;
    this.#parts = parts;
    this.#record = parts.record;
    this.#usage = parts.checkpoint?.usage;
    this.#tokenizer = parts.tokenizer;
  }

  get id(): string {
    return this.#record.id;
  }

  /** As it was last written to `run.json`. */
  get record(): RunRecord {
    return this.#record;
  }

  /** Where this process goes on; undefined for a new run, and for one that was stopped before its first checkpoint. */
  get checkpoint(): Checkpoint | undefined {
    return this.#parts.checkpoint;
  }

  /** Settings and versions that are others than when the run was resumed before or began: a line each, with old value and new; of texts only their length. */
  get changes(): readonly string[] {
    return this.#parts.changes;
  }

  /** @internal Tokens up to the last step; undefined where no ledger is asked. */
  get usage(): readonly RunUsage[] | undefined {
    return this.#usage;
  }

  /** What went wrong without stopping the run, such as a ledger that could not be asked: one line each, without content. */
  get warnings(): readonly string[] {
    return this.#parts.warnings.messages;
  }

  /** For the loops: keeps the metrics, samples and alarms of a step, and how its grader's gate let it begin. Bound, so it can be handed on. @throws write errors */
  readonly onStep = async ({ type, step, metrics, groups = [], alarms = [], graderGate }: LoopStep): Promise<void> => {
    if (graderGate !== undefined) await this.#keepGate(step, graderGate);
    await this.samples(step, groups);
    await this.alarms(alarms);
    await this.step(step, metrics, type);
  };

  /** For the loops: keeps the metrics and answers of a measurement. Bound, so it can be handed on. @throws write errors */
  readonly onValidation = async ({ step, metrics, evaluation }: LoopValidation): Promise<void> => {
    const { answers = [] } = evaluation ?? {};
    await this.samples(step, answers.map(groupOf), 'validation');
    await this.step(step, metrics, 'validation');
  };

  /** For the loops: keeps answers to the same problems at the start, in the middle and at the end. Bound, so it can be handed on. @throws write errors */
  readonly onFixedSamples = async ({ step, answers }: JudgedProblems & { readonly step: number }): Promise<void> => {
    await this.samples(step, answers.map(groupOf), 'fixed');
  };

  /**
   * Keeps the numbers of a step. Numbers that are not finite are left out, with a warning.
   *
   * @param step from 0; a later line of the same step and type counts
   * @param type default `step-end`
   * @throws `invalid_argument` for a name that the line has already (`step`, `type`, `time`); `disposed` after the end; write errors
   */
  async step(step: number, metrics: Metrics, type = 'step-end'): Promise<void> {
    this.#check(step);
    for (const name of lineFields) {
      if (Object.hasOwn(metrics, name)) {
        throw complaint({
          field: `metrics.${name}`,
          expected: 'another name',
          got: 'one that each line has',
          remedy: 'name it like `group/name`',
        });
      }
    }
    const finite = Object.entries(metrics).filter(([, value]) => Number.isFinite(value));
    const left = Object.keys(metrics).length - finite.length;
    if (left > 0)
      this.#warn(`step ${step}: ${left} of ${Object.keys(metrics).length} metrics were not finite and are left out`);
    const { log, now } = this.#parts;
    const metricsWithUsage = { ...Object.fromEntries(finite), ...(await this.#usageMetrics()) };
    const line = { step, type, atMs: now(), metrics: metricsWithUsage };
    await log.step(line);
    await this.#track(line);
  }

  /**
   * Keeps what was sampled at a step: ids, logprobs, text, components and rewards; and, in `problems.jsonl`, the problems that it met. Content: it is
   * written to these files and nowhere else.
   *
   * @throws `disposed` after the end; write errors
   */
  async samples(step: number, groups: readonly SampledRollouts[], type: RunSample['type'] = 'train'): Promise<void> {
    this.#check(step);
    const { keep } = this.#parts;
    const tokenizer = this.#tokenizer;
    await this.#parts.met.add(
      groups.map(({ problem }) => problem),
      { step, use: type, isKept: keep.groupsPerStep > 0 },
    );
    if (groups.length === 0 || (keep.groupsPerStep === 0 && type !== 'fixed')) return;
    const wanted = type === 'fixed' ? groups.length : keep.groupsPerStep;
    const whole = type !== 'train' || (step - 1) % keep.everySteps === 0 ? wanted : 0;
    this.#samples ??= await JsonlFile.open(join(this.folder, samplesName));
    await this.#samples.append(
      samplesOf(groups, { step, type, whole, ...(tokenizer === undefined ? {} : { tokenizer }) }),
    );
  }

  /** Keeps alarms of a guard, in `alarms.jsonl`; trackers are told of them with the next numbers. @throws `disposed` after the end; write errors */
  async alarms(alarms: readonly Alarm[]): Promise<void> {
    if (alarms.length === 0) return;
    this.#check(0);
    await this.#keepAlarms(alarms);
  }

  /**
   * Keeps what `evaluate` found of problems that aren't trained on, as `validation/accuracy`, `validation/low` and `validation/high` (Wilson, 95 %),
   * `validation/n`, `validation/correct`, `validation/unparsed`, `validation/grader_errors`; and its answers.
   *
   * @param step after which it was measured; 0 is before training
   */
  async validation(step: number, evaluation: Omit<Evaluation<unknown>, 'answers'> & JudgedProblems): Promise<void> {
    await this.onValidation({ step, metrics: validationMetrics(evaluation), evaluation });
  }

  /**
   * Ends the run; later calls do nothing. Without it, disposing ends it as `interrupted`.
   *
   * @param error of a run that failed; what isn't an error of Loopwright is kept by its class alone, for its message may hold content
   * @throws write errors
   */
  async finish(status: 'done' | 'interrupted' | 'failed' = 'done', error?: unknown): Promise<RunRecord> {
    if (!this.#isOpen) return this.#record;
    this.#isOpen = false;
    const { log, trackers, now, lock, meter } = this.#parts;
    try {
      const end = { status, endedAtMs: now() };
      const ending = endingAlarm(error);
      if (ending !== undefined && !this.#keptAlarms.has(keyOf(ending))) await this.#keepAlarms([ending]);
      const last = this.#untold.at(-1);
      if (last !== undefined) await this.#track({ type: 'alarms', step: last.step, atMs: end.endedAtMs, metrics: {} });
      const used = await this.attempt('usage', () => meter?.read());
      await log.finish(end);
      await this.#samples?.close();
      await this.#alarms?.close();
      await this.#parts.met.close();
      const reports = await Promise.all(
        trackers.map(async (tracker) => [tracker.name, { ...tracker.place, ...(await tracker.finish(end)) }] as const),
      );
      for (const [name, { lost, problem }] of reports) {
        if (lost > 0) this.#warn(`${name}: ${counted(lost, 'step')} not sent (${problem ?? 'no reason given'})`);
        else if (problem !== undefined) this.#warn(`${name}: ${problem}`);
      }
      const { usage, ...rest } = used ?? {};
      this.#record = {
        ...this.#record,
        status,
        endedAt: new Date(end.endedAtMs).toISOString(),
        ...(error === undefined ? {} : { error: errorOf(error) }),
        ...(usage === undefined ? {} : { usage: [...usage] }),
        ...rest,
        ...(reports.length === 0 ? {} : { trackers: Object.fromEntries(reports) }),
      };
      await writeRecord(this.folder, this.#record);
      return this.#record;
    } finally {
      await lock[Symbol.asyncDispose]();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.finish('interrupted');
  }

  /** Keeps which session trains, so that whoever resumes the run can stop it; its tokenizer, for samples, where `openRun` was given none. @throws write errors */
  async attach({
    session,
    tokenizer,
  }: {
    readonly session: NonNullable<RunRecord['session']>;
    readonly tokenizer?: Tokenizer;
  }): Promise<void> {
    this.#check(0);
    this.#tokenizer ??= tokenizer;
    this.#record = { ...this.#record, session };
    await writeRecord(this.folder, this.#record);
  }

  async #keepAlarms(alarms: readonly Alarm[]): Promise<void> {
    this.#alarms ??= await JsonlFile.open(join(this.folder, alarmsName));
    await this.#alarms.append(alarms);
    this.#untold.push(...alarms);
    for (const alarm of alarms) this.#keptAlarms.add(keyOf(alarm));
  }

  async #track(line: TrackedStep): Promise<void> {
    const alarms = this.#untold;
    this.#untold = [];
    const told = alarms.length === 0 ? line : { ...line, alarms };
    await Promise.all(this.#parts.trackers.map((tracker) => tracker.step(told)));
  }

  /** Each decision once: a run that goes on asks again. */
  async #keepGate(step: number, decision: GateDecision): Promise<void> {
    const { graderGates = [] } = this.#record;
    const { at: _at, step: _step, ...last } = graderGates.at(-1) ?? {};
    if (isDeepStrictEqual(last, decision)) return;
    const kept = { at: new Date(this.#parts.now()).toISOString(), step, ...decision };
    this.#record = { ...this.#record, graderGates: [...graderGates, kept] };
    await writeRecord(this.folder, this.#record);
  }

  async #usageMetrics(): Promise<Metrics> {
    const used = await this.attempt('usage', () => this.#parts.meter?.read());
    if (used === undefined) return {};
    this.#usage = used.usage;
    return usageMetrics(used);
  }

  /** @internal What fails here is a warning, told once. */
  async attempt<T>(what: string, work: () => Promise<T> | undefined): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.#warn(
        `${what}: the server gave no answer to go by (${LoopwrightError.isInstance(error) ? error.code : errorText(error)})`,
      );
      return undefined;
    }
  }

  #warn(text: string): void {
    this.#parts.warnings.add(text);
  }

  #check(step: number): void {
    if (!this.#isOpen) throw new LoopwrightError({ code: 'disposed', message: `${this.folder}: this run has ended` });
    if (!Number.isInteger(step) || step < 0) {
      throw complaint({ field: 'step', expected: 'a whole number from 0', got: String(step) });
    }
  }
}

function keyOf({ name, step }: Alarm): string {
  return `${name} ${step}`;
}

/** One answer as a group of its own. */
function groupOf(answer: JudgedProblems['answers'][number]): SampledRollouts {
  const { problem, prompt } = answer;
  return { problem, rollouts: [answer], ...(prompt === undefined ? {} : { prompt }) };
}

function errorOf(error: unknown): NonNullable<RunRecord['error']> {
  const code = LoopwrightError.isInstance(error) ? error.code : 'internal';
  return { code, message: errorText(error) };
}
