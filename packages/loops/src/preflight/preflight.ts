/** Preflight: what a base model makes of a task, before anything is trained. */
import { complaint } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import { type Problem, promptOf } from '../environments/environment.js';
import { byLevel } from '../findings.js';
import { createRandom } from '../random.js';
import { accuracyOf } from '../statistics/accuracy.js';
import { defineTask } from '../tasks/define-task.js';
import { readProblems } from '../tasks/read-problems.js';
import { resolveSettings } from '../tasks/settings.js';
import { isAnswerEnvironment, type Task } from '../tasks/task.js';
import type { Sampler, Trainer } from '../training/clients.js';
import { wholeNumber } from '../training/options.js';
import { expectedDeadShare, passRateHistogram } from './dead-groups.js';
import { forecastRun, type MemoryModel, type PriceModel } from './forecast.js';
import { withKeptPrompts } from './kept-prompts.js';
import { earlierGap, type FormatGapOptions, measureForm, mostDrawsOf } from './measure-form.js';
import { measureSteps } from './measure-steps.js';
import { preflightFindings } from './preflight-findings.js';
import { sampleRates } from './sample-rates.js';
import { templateFindings } from './template-findings.js';
import type { FormRate, MeasuredSteps, Preflight, PromptRate } from './words.js';

export interface PreflightOptions {
  /** Of the base model: its pass rates are measured. */
  readonly sampler: Sampler;
  readonly tokenizer: Tokenizer;
  /** Completions of a prompt, k; default 8. */
  readonly samples?: number;
  /** Prompts that are sampled, drawn by the seed; default 100. `all` takes every one. */
  readonly prompts?: number | 'all';
  /** Prompts at once; default 16. */
  readonly concurrency?: number;
  /** Tokens of prompt and answer at most, where it is known. */
  readonly contextLength?: number;
  /** What an earlier attempt measured, by id. */
  readonly measured?: ReadonlyMap<string, PromptRate>;
  /** Called and awaited for each prompt that was measured, to keep it for a later attempt. */
  readonly onRate?: (rate: PromptRate) => void | Promise<void>;
  /** Of the base model, for this alone: some steps are measured in it, to forecast the time. Without it no time is forecast. */
  readonly training?: Trainer;
  /** What an earlier attempt measured; measured again where the settings are others. */
  readonly step?: MeasuredSteps;
  /** Called and awaited when the steps have been measured. */
  readonly onStep?: (step: MeasuredSteps) => void | Promise<void>;
  /** Of the engine; without it no memory is forecast. */
  readonly memory?: MemoryModel;
  /** Without them no cost is forecast. */
  readonly prices?: PriceModel;
  /** Where it is given, answers that can't be read are drawn again until they can, to measure what their form is worth. */
  readonly formatGap?: FormatGapOptions;
  /** What an earlier attempt drew again, by id: told without `formatGap` too, where it did so for all prompts that are sampled. */
  readonly forms?: ReadonlyMap<string, FormRate>;
  /** Default 0. */
  readonly seed?: number;
  readonly signal?: AbortSignal;
  /** Milliseconds; default the performance clock. */
  readonly now?: () => number;
}

/** Tokens at most of a step that is measured: a run's own step is measured whole where it has fewer, else by as many of its problems. */
const measuredTokens = 16_384;

/** The band of pass rates in which groups teach. */
export const usefulRates = { low: 0.1, high: 0.9 } as const;

/**
 * Samples completions of the task's prompts, judges them by its grader, and says whether to train: `no-go` where a finding says stop.
 *
 * Of a task of several turns a completion is an episode.
 *
 * Prompts that the model has no room for are not sampled; that is a finding.
 *
 * @throws `invalid_argument` for a wrong task or option; `context_length_exceeded` where no prompt fits; `grader_failed` where it judges nothing;
 *   `cancelled`; what the client throws
 * @example
 * const { report } = await preflight(task, { sampler, tokenizer });
 */
export async function preflight<P extends Problem>(task: Task<P>, options: PreflightOptions): Promise<Preflight<P>> {
  const { sampler, tokenizer, samples = 8, prompts = 100, concurrency = 16, seed = 0, signal, contextLength } = options;
  const { memory, prices, formatGap } = options;
  const { name, environment: given, settings } = defineTask(task);
  wholeNumber('samples', samples, 1);
  wholeNumber('concurrency', concurrency, 1);
  if (prompts !== 'all') wholeNumber('prompts', prompts, 1);
  if (formatGap !== undefined) mostDrawsOf(formatGap);
  const resolved = resolveSettings(settings);
  const { groupSize, maxTokens, maxTurns, temperature, correctReward } = resolved;
  const read = signal === undefined ? {} : { signal };
  const random = createRandom(seed);
  const drawn = () => {
    const count = prompts === 'all' ? 1000 : prompts;
    const all = Array.from({ length: count }, () => given.draw(random));
    return [...new Map(all.map((problem) => [problem.id, problem])).values()];
  };
  const train = task.train === undefined ? drawn() : await readProblems(task.train, { field: 'task.train', ...read });
  const heldOut =
    task.heldOut === undefined ? undefined : await readProblems(task.heldOut, { field: 'task.heldOut', ...read });
  const chosen = prompts === 'all' ? train : random.shuffle([...train]).slice(0, prompts);
  const environment = isAnswerEnvironment(given) ? withKeptPrompts(given, chosen) : given;
  const lengthOf = (problem: P): number =>
    isAnswerEnvironment(environment) ? promptOf(environment, problem, tokenizer).length : 0;
  const problems = contextLength === undefined ? chosen : chosen.filter((each) => lengthOf(each) < contextLength);
  if (problems.length === 0) throw nothingFits(chosen.length, contextLength);
  const { measured = new Map<string, PromptRate>(), onRate } = options;
  const sampling = { samples, maxTokens, maxTurns, temperature, correctReward, concurrency, seed };
  const asked = { sampler, tokenizer, environment, problems, signal };
  const rates = await sampleRates({ ...sampling, ...asked, measured, onRate });
  const sum = (of: (rate: PromptRate) => number): number => rates.reduce((total, rate) => total + of(rate), 0);
  const [correct, n, unparsed] = [sum((r) => r.correct), sum((r) => r.n), sum((r) => r.unparsed)];
  const useful = problems.filter((_, i) => {
    const { passRate, n: graded } = rates[i]!; // one for each
    return graded > 0 && passRate >= usefulRates.low && passRate <= usefulRates.high;
  });
  const deadShare = expectedDeadShare(
    rates.filter((rate) => rate.n > 0),
    groupSize,
  );
  const tooLong =
    contextLength === undefined ? 0 : train.filter((problem) => lengthOf(problem) + maxTokens > contextLength).length;
  const isEpisodes = !isAnswerEnvironment(environment);
  const step = await stepOf({ ...options, task: { ...task, environment }, settings: resolved, rates, problems, seed });
  const { forms = new Map<string, FormRate>() } = options;
  const form =
    formatGap === undefined
      ? earlierGap(rates, forms)
      : await measureForm(rates, { ...sampling, ...asked, formatGap, earlier: forms, step, prices });
  const share = n === 0 ? 0 : correct / n;
  const { interval } = accuracyOf(correct, n);
  const facts = {
    prompts: { train: train.length, measured: rates.length, useful: useful.length },
    passRate: { share, correct, n, interval },
    histogram: passRateHistogram(rates.map(({ passRate }) => passRate)),
    deadGroups: { groupSize, expectedShare: deadShare },
    formatGap: {
      unparsedShare: n === 0 ? 0 : unparsed / n,
      ofParsed: n === unparsed ? 0 : correct / (n - unparsed),
      ofAll: share,
      ...(form === undefined ? {} : { measured: form }),
    },
    ...(step === undefined ? {} : { step }),
    forecast: forecastRun({ rates, settings: resolved, deadShare, isEpisodes, step, memory, prices }),
  };
  const isListed = task.train !== undefined;
  const sampledPrompts = isAnswerEnvironment(environment)
    ? problems.map((problem) => promptOf(environment, problem, tokenizer))
    : [];
  const findings = byLevel([
    ...preflightFindings({ ...facts, train, isListed, heldOut, rates, tooLong }),
    ...templateFindings(sampledPrompts, tokenizer),
  ]);
  const outcome = findings.some(({ level }) => level === 'stop') ? ('no-go' as const) : ('go' as const);
  return { report: { task: name, outcome, ...facts, findings }, rates, useful };
}

function nothingFits(prompts: number, contextLength: number | undefined): Error {
  return complaint({
    code: 'context_length_exceeded',
    field: 'task.train',
    expected: `prompts of fewer tokens than ${contextLength}, the context of the model`,
    got: `none among ${prompts}`,
    remedy: 'shorten the prompts, or take a model with a longer context',
  });
}

interface StepOptions<P extends Problem> extends Omit<PreflightOptions, 'prompts'> {
  readonly task: Task<P>;
  readonly settings: ReturnType<typeof resolveSettings>;
  readonly rates: readonly PromptRate[];
  readonly problems: readonly P[];
  readonly seed: number;
}

/** As an earlier attempt measured it, or measured now. */
async function stepOf<P extends Problem>({
  training,
  step: earlier,
  onStep,
  now = () => performance.now(),
  signal,
  rates,
  problems,
  ...options
}: StepOptions<P>): Promise<MeasuredSteps | undefined> {
  const { groupSize, groupsPerStep, rank } = options.settings;
  const tokens = rates.reduce((sum, rate) => sum + rate.trainingTokens, 0);
  const completions = rates.reduce((sum, rate) => sum + rate.sampled, 0);
  if (tokens === 0) return undefined;
  const fitting = Math.floor((measuredTokens * completions) / (tokens * groupSize));
  const groups = Math.max(1, Math.min(groupsPerStep, fitting));
  if (earlier?.groups === groups && earlier.groupSize === groupSize && earlier.rank === rank) return earlier;
  if (training === undefined) return undefined;
  // Fewer problems than a step has come again in it, as in a run.
  const chosen = Array.from({ length: groups }, (_, i) => problems[i % problems.length]!);
  const measured = await measureSteps({ ...options, training, problems: chosen, signal, now });
  if (measured.n === 0) return undefined;
  const heldBytes = await options.memory?.held?.();
  const step = heldBytes === undefined ? measured : { ...measured, heldBytes };
  await onStep?.(step);
  return step;
}
