/** Tokens that a run used, and what they cost: from a ledger, such as a server's. */
import type { TokenUsage } from '@loopwright/protocol';
import type { Metrics } from '../training/grpo-metrics.js';
import { costOf, type PriceTable } from './prices.js';
import type { RunRecord, RunUsage } from './run-record.js';

/** Tokens of a base model; the lines of `ServiceClient.usage` are such. */
export interface UsedTokens extends TokenUsage {
  readonly baseModel: string;
}

/** Asks the ledger: everything so far, of whatever the run uses and others may have used before it. */
export type AskUsage = () => Promise<readonly UsedTokens[]>;

/** What was used since the run began: the ledger's sums less those of the beginning, plus those of the part that it goes on from. */
export class UsageMeter {
  readonly #ask: AskUsage;
  readonly #prices: PriceTable | undefined;
  #before: ReadonlyMap<string, TokenUsage> = new Map();
  #earlier: readonly RunUsage[] = [];

  constructor(ask: AskUsage, prices: PriceTable | undefined) {
    this.#ask = ask;
    this.#prices = prices;
  }

  /** @throws what the ledger throws */
  async start(earlier: readonly RunUsage[] = []): Promise<void> {
    this.#earlier = earlier;
    this.#before = sums(await this.#ask());
  }

  /** @throws what the ledger throws */
  async read(): Promise<{ readonly usage: readonly RunUsage[]; readonly cost?: NonNullable<RunRecord['cost']> }> {
    const now = sums(await this.#ask());
    const own = [...now].map(([baseModel, used]) => ({
      baseModel,
      ...minus(used, this.#before.get(baseModel) ?? none),
    }));
    const usage = [...sums([...this.#earlier, ...own])]
      .map(([baseModel, used]) => ({ baseModel, ...used }))
      .filter((used) => used.prefillTokens + used.sampleTokens + used.trainingTokens > 0);
    return this.#prices === undefined ? { usage } : { usage, cost: costOfAll(usage, this.#prices) };
  }
}

/** As numbers of a step: `usage/prefill_tokens`, `usage/sample_tokens`, `usage/training_tokens` and, with prices, `cost/total`: all since the run began. */
export function usageMetrics({ usage, cost }: Awaited<ReturnType<UsageMeter['read']>>): Metrics {
  const sum = usage.reduce<TokenUsage>(plus, none);
  return {
    'usage/prefill_tokens': sum.prefillTokens,
    'usage/sample_tokens': sum.sampleTokens,
    'usage/training_tokens': sum.trainingTokens,
    ...(cost === undefined ? {} : { 'cost/total': cost.total }),
  };
}

function costOfAll(usage: readonly RunUsage[], prices: PriceTable): NonNullable<RunRecord['cost']> {
  const costs = usage.map((used) => ({ model: used.baseModel, cost: costOf(used, used.baseModel, prices) }));
  return {
    currency: prices.currency,
    total: costs.reduce((sum, { cost = 0 }) => sum + cost, 0),
    unpriced: costs.flatMap(({ model, cost }) => (cost === undefined ? [model] : [])),
  };
}

const none: TokenUsage = { prefillTokens: 0, sampleTokens: 0, trainingTokens: 0 };

function sums(lines: readonly UsedTokens[]): Map<string, TokenUsage> {
  const byModel = new Map<string, TokenUsage>();
  for (const line of lines) byModel.set(line.baseModel, plus(byModel.get(line.baseModel) ?? none, line));
  return byModel;
}

function plus(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    prefillTokens: a.prefillTokens + b.prefillTokens,
    sampleTokens: a.sampleTokens + b.sampleTokens,
    trainingTokens: a.trainingTokens + b.trainingTokens,
  };
}

/** A ledger that forgets doesn't make a run give back what it used. */
function minus(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    prefillTokens: Math.max(0, a.prefillTokens - b.prefillTokens),
    sampleTokens: Math.max(0, a.sampleTokens - b.sampleTokens),
    trainingTokens: Math.max(0, a.trainingTokens - b.trainingTokens),
  };
}
