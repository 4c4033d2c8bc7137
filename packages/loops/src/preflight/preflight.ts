/** Preflight: what a base model makes of a task, before anything is trained. */
import { complaint } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import { type Problem, promptOf } from '../environments/environment.js';
import { createRandom } from '../random.js';
import { mean } from '../statistics/advantages.js';
import { wilsonInterval } from '../statistics/intervals.js';
import { defineTask } from '../tasks/define-task.js';
import { readProblems } from '../tasks/read-problems.js';
import { resolveSettings } from '../tasks/settings.js';
import { isAnswerEnvironment, type Task } from '../tasks/task.js';
import type { Sampler } from '../training/clients.js';
import { wholeNumber } from '../training/options.js';
import { expectedDeadShare, passRateHistogram } from './dead-groups.js';
import { preflightFindings } from './preflight-findings.js';
import { sampleRates } from './sample-rates.js';
import type { Forecast, Preflight, PromptRate } from './words.js';

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
  /** Default 0. */
  readonly seed?: number;
  readonly signal?: AbortSignal;
}

/** The band of pass rates in which groups teach. */
export const usefulRates = { low: 0.1, high: 0.9 } as const;

/**
 * Samples completions of the task's prompts, judges them by its grader, and says whether to train: `no-go` where a finding says stop.
 *
 * For tasks of one answer.
 *
 * @throws `invalid_argument` for a wrong task or option, or a task of several turns; `cancelled`; what the client throws
 * @example
 * const { report } = await preflight(task, { sampler, tokenizer });
 */
export async function preflight<P extends Problem>(task: Task<P>, options: PreflightOptions): Promise<Preflight<P>> {
  const { sampler, tokenizer, samples = 8, prompts = 100, concurrency = 16, seed = 0, signal, contextLength } = options;
  const { name, environment, settings } = defineTask(task);
  if (!isAnswerEnvironment(environment))
    throw complaint({ field: 'task.environment', expected: 'a task of one answer', got: 'one of several turns' });
  wholeNumber('samples', samples, 1);
  wholeNumber('concurrency', concurrency, 1);
  if (prompts !== 'all') wholeNumber('prompts', prompts, 1);
  const { groupSize, groupsPerStep, steps, maxTokens, temperature, correctReward } = resolveSettings(settings);
  const read = signal === undefined ? {} : { signal };
  const random = createRandom(seed);
  const drawn = () => {
    const count = prompts === 'all' ? 1000 : prompts;
    const all = Array.from({ length: count }, () => environment.draw(random));
    return [...new Map(all.map((problem) => [problem.id, problem])).values()];
  };
  const train = task.train === undefined ? drawn() : await readProblems(task.train, { field: 'task.train', ...read });
  const heldOut =
    task.heldOut === undefined ? undefined : await readProblems(task.heldOut, { field: 'task.heldOut', ...read });
  const problems = prompts === 'all' ? train : random.shuffle([...train]).slice(0, prompts);
  const { measured = new Map<string, PromptRate>(), onRate } = options;
  const sampling = { samples, maxTokens, temperature, correctReward, concurrency, seed };
  const rates = await sampleRates({ sampler, tokenizer, environment, problems, ...sampling, measured, onRate, signal });
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
    contextLength === undefined
      ? 0
      : train.filter((problem) => promptOf(environment, problem, tokenizer).length + maxTokens > contextLength).length;
  const share = n === 0 ? 0 : correct / n;
  const facts = {
    prompts: { train: train.length, measured: rates.length, useful: useful.length },
    passRate: { share, correct, n, interval: n === 0 ? { low: 0, high: 1 } : wilsonInterval(correct, n) },
    histogram: passRateHistogram(rates.map(({ passRate }) => passRate)),
    deadGroups: { groupSize, expectedShare: deadShare },
    formatGap: {
      unparsedShare: n === 0 ? 0 : unparsed / n,
      ofParsed: n === unparsed ? 0 : correct / (n - unparsed),
      ofAll: share,
    },
    tokens: forecastTokens(rates, { completions: groupSize * groupsPerStep * steps, maxTokens, deadShare }),
  };
  const isListed = task.train !== undefined;
  const findings = preflightFindings({ ...facts, train, isListed, heldOut, rates, tooLong });
  const outcome = findings.some(({ level }) => level === 'stop') ? ('no-go' as const) : ('go' as const);
  return { report: { task: name, outcome, ...facts, findings }, rates, useful };
}

interface Run {
  readonly completions: number;
  readonly maxTokens: number;
  readonly deadShare: number;
}

/**
 * Tokens of a run, by the mean length of completions that were measured. Lengths drift as a model learns: the range goes from half of them to twice, within
 * `maxTokens`; trained are the completions of groups that aren't dead, with their prompts, and at most all.
 */
function forecastTokens(rates: readonly PromptRate[], { completions, maxTokens, deadShare }: Run) {
  const length = mean(rates.flatMap((rate) => (rate.sampled === 0 ? [] : [rate.completionTokens / rate.sampled])));
  const prompt = mean(rates.map(({ promptTokens }) => promptTokens));
  const [low, high] = [length / 2, Math.min(maxTokens, length * 2)];
  const live = Number.isFinite(deadShare) ? 1 - deadShare : 1;
  const forecast = (of: (length: number, liveShare: number) => number): Forecast => ({
    expected: Math.round(completions * of(length, live)),
    low: Math.round(completions * of(low, live / 2)),
    high: Math.round(completions * of(high, 1)),
  });
  return { sampled: forecast((each) => each), trained: forecast((each, share) => share * (prompt + each)) };
}
