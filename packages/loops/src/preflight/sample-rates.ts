/** Pass rates of prompts: k completions of each, judged by the real grader. */
import type { Tokenizer } from '@loopwright/text';
import { type Environment, isFailure, type Problem } from '../environments/environment.js';
import { hashText, mixSeed } from '../random.js';
import type { Sampler } from '../training/clients.js';
import { gradeGroups, sampleGroups } from '../training/rollouts.js';
import { withScope } from '../training/scope.js';
import type { PromptRate } from './words.js';

export interface SampleRatesOptions<P extends Problem> {
  readonly sampler: Sampler;
  readonly tokenizer: Tokenizer;
  readonly environment: Environment<P>;
  readonly problems: readonly P[];
  readonly samples: number;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly correctReward: number;
  readonly concurrency: number;
  readonly seed: number;
  /** Of an earlier attempt, by id: not measured again. */
  readonly measured: ReadonlyMap<string, PromptRate>;
  readonly onRate: ((rate: PromptRate) => void | Promise<void>) | undefined;
  readonly signal: AbortSignal | undefined;
}

/** In the order of the problems. The seed of a prompt is that of its id, so that an attempt that goes on comes to the same. */
export function sampleRates<P extends Problem>(options: SampleRatesOptions<P>): Promise<PromptRate[]> {
  const { problems, measured, concurrency, onRate, signal } = options;
  return withScope(signal, async (scope) => {
    const rates: PromptRate[] = [];
    let next = 0;
    const worker = async (aborted: AbortSignal): Promise<void> => {
      for (let at = next++; at < problems.length; at = next++) {
        const problem = problems[at]!; // in range
        const earlier = measured.get(problem.id);
        const rate = earlier ?? (await rateOf(problem, { ...options, signal: aborted }));
        rates[at] = rate;
        if (earlier === undefined) await onRate?.(rate);
      }
    };
    await scope.all(Array.from({ length: Math.min(concurrency, problems.length) }, () => worker));
    return rates;
  });
}

function rateOf<P extends Problem>(problem: P, options: SampleRatesOptions<P>): Promise<PromptRate> {
  const { sampler, tokenizer, environment, samples: numSamples, maxTokens, temperature, seed, correctReward } = options;
  return withScope(options.signal, async (scope) => {
    const sampling = { numSamples, maxTokens, temperature, seedOf: () => mixSeed(seed, hashText(problem.id)) };
    const shared = { environment, tokenizer, scope };
    const sampled = await sampleGroups({ ...shared, sampler, problems: [problem], ...sampling });
    const [group] = await gradeGroups({ ...shared, groups: sampled });
    const rollouts = group?.rollouts ?? [];
    const count = (test: (rollout: (typeof rollouts)[number]) => boolean): number => rollouts.filter(test).length;
    const graderErrors = count(({ grade }) => isFailure(grade));
    const n = rollouts.length - graderErrors;
    const correct = count(({ reward }) => reward !== undefined && reward >= correctReward);
    return {
      id: problem.id,
      n,
      correct,
      passRate: n === 0 ? 0 : correct / n,
      sampled: rollouts.length,
      unparsed: count(({ grade }) => grade.status === 'unparsed'),
      truncated: count(({ sequence }) => sequence.stopReason === 'length'),
      graderErrors,
      promptTokens: group?.prompt.length ?? 0,
      completionTokens: rollouts.reduce((sum, { sequence }) => sum + sequence.tokens.length, 0),
    };
  });
}
