/**
 * A policy small enough to follow by hand: for each question one row of logits over the characters, answers of one token.
 * It samples, scores and takes gradient steps for real, so a loop that feeds it wrongly does not learn.
 */
import type {
  CustomDatum,
  CustomLoss,
  CustomPassOutput,
  ForwardBackwardOutput,
  OptimStepOutput,
  SampleOptions,
  SampleOutput,
} from '@loopwright/client';
import { type DatumFor, LoopwrightError, type LossName } from '@loopwright/protocol';
import { loadTokenizer, type Tokenizer } from '@loopwright/text';
import type { Environment, Problem } from '../environments/environment.js';
import { createRandom } from '../random.js';
import type { Sampler, Scorer, Trainer } from '../training/clients.js';

const characters = Array.from('0123456789=+-?x\u001b\n');

/** One token a character. */
export function characterTokenizer(chatTemplate?: string): Tokenizer {
  return loadTokenizer({
    chatTemplate,
    tokenizerJson: {
      model: { type: 'BPE', vocab: Object.fromEntries(characters.map((char, i) => [char, i])), merges: [] },
      decoder: { type: 'Fuse' },
    },
  });
}

/** `3=` is to be answered by 3. */
export const copyEnvironment: Environment = {
  name: 'copy',
  draw: (random) => copyProblem(random.integer(4)),
  grade: ({ problem, text }) =>
    /^\d$/.test(text) ? { status: 'ok', reward: text === problem.answer ? 1 : 0 } : { status: 'unparsed', reward: 0 },
};

export function copyProblem(digit: number): Problem {
  return { id: `${digit}=`, question: `${digit}=`, answer: String(digit) };
}

export type Weights = readonly (readonly number[])[];

function softmax(logits: readonly number[]): number[] {
  const highest = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - highest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/** Log-probabilities of what may follow a question, whose first token chooses the row. */
function rowOf(weights: Weights, tokens: readonly number[]): number[] {
  return softmax(weights[tokens[0] ?? 0] ?? []).map(Math.log);
}

/** Adds slope · ∂ log p(target) / ∂ logits. */
function addSlope(gradientRow: number[], logRow: readonly number[], target: number, slope: number): void {
  for (const [a, logprob] of logRow.entries()) {
    gradientRow[a] = (gradientRow[a] ?? 0) + slope * ((a === target ? 1 : 0) - Math.exp(logprob));
  }
}

class BanditSampler implements Sampler, Scorer {
  readonly weights: Weights;
  readonly #log: CallLog;

  constructor(weights: Weights, log: CallLog) {
    this.weights = weights;
    this.#log = log;
  }

  async sample(prompt: readonly number[], options: SampleOptions = {}): Promise<SampleOutput> {
    const { numSamples = 1, temperature = 1, seed = 0, signal } = options;
    await this.#log.enter('sample', options, signal);
    const random = createRandom(seed);
    const logprobs = rowOf(this.weights, prompt);
    const sequences = Array.from({ length: numSamples }, () => {
      const greedy = logprobs.indexOf(Math.max(...logprobs));
      const token = temperature === 0 ? greedy : drawIndex(logprobs.map(Math.exp), random.next());
      return { tokens: [token], logprobs: [logprobs[token] ?? 0], stopReason: 'length' as const };
    });
    return { sequences };
  }

  async computeLogprobs(tokens: readonly number[]): Promise<(number | null)[]> {
    await this.#log.enter('compute-logprobs', tokens, undefined);
    const row = rowOf(this.weights, tokens);
    return tokens.map((token, i) => (i === 0 ? null : (row[token] ?? 0)));
  }
}

function drawIndex(probabilities: readonly number[], uniform: number): number {
  let rest = uniform;
  for (const [i, probability] of probabilities.entries()) {
    rest -= probability;
    if (rest < 0) return i;
  }
  return probabilities.length - 1;
}

export interface BanditOptions {
  /** Called when a call begins; may wait or throw. */
  readonly onCall?: (name: string, detail: unknown) => void | Promise<void>;
  /** To begin with; default all 0. */
  readonly weights?: Weights;
}

/** Notes calls in order, and rejects them with `cancelled` when their signal aborts. */
class CallLog {
  readonly names: string[] = [];
  readonly #onCall: BanditOptions['onCall'];

  constructor(onCall: BanditOptions['onCall']) {
    this.#onCall = onCall;
  }

  async enter(name: string, detail: unknown, signal: AbortSignal | undefined): Promise<void> {
    this.names.push(name);
    const cancelled = new LoopwrightError({ code: 'cancelled', message: `${name} was cancelled` });
    if (signal?.aborted === true) throw cancelled;
    const aborted = new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => reject(cancelled), { once: true });
    });
    aborted.catch(() => undefined);
    await Promise.race([Promise.resolve(this.#onCall?.(name, detail)), aborted]);
  }
}

/** Steps by plain gradient descent, at ten thousand times the learning rate that it is given: its logits are few. */
export class Bandit implements Trainer {
  readonly #log: CallLog;
  #weights: number[][];
  #gradient: number[][] | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  constructor({ onCall, weights }: BanditOptions = {}) {
    this.#log = new CallLog(onCall);
    this.#weights = (weights ?? characters.map(() => characters.map(() => 0))).map((row) => [...row]);
  }

  /** Names of calls, in the order in which they began. */
  get calls(): readonly string[] {
    return this.#log.names;
  }

  get weights(): Weights {
    return this.#weights;
  }

  /** A sampler of the weights as they are now. */
  snapshot(): Sampler & Scorer {
    return new BanditSampler(structuredClone(this.#weights), this.#log);
  }

  async getTokenizer(): Promise<Tokenizer> {
    return characterTokenizer();
  }

  forward<L extends LossName>(data: readonly DatumFor<NoInfer<L>>[], loss: L): Promise<ForwardBackwardOutput> {
    return this.#run('forward', data, undefined, () => this.#pass(data, loss, undefined));
  }

  forwardBackward<L extends LossName>(
    data: readonly DatumFor<NoInfer<L>>[],
    loss: L,
    _config?: unknown,
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<ForwardBackwardOutput> {
    return this.#run('forward-backward', data, signal, () => {
      this.#gradient ??= characters.map(() => characters.map(() => 0));
      return this.#pass(data, loss, this.#gradient);
    });
  }

  forwardBackwardCustom<D extends CustomDatum>(
    data: readonly D[],
    loss: CustomLoss<D>,
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<CustomPassOutput> {
    return this.#run('forward-backward-custom', data, signal, () => {
      const rows = data.map(({ modelInput }) => rowOf(this.#weights, Array.from(modelInput)));
      const targets = data.map(({ lossFnInputs }) => Array.from<unknown, number>(lossFnInputs.targetTokens, Number));
      const logprobs = targets.map((ids, i) => ids.map((id) => rows[i]?.[id] ?? 0));
      const { loss: total, gradients, metrics = {} } = loss(logprobs, data);
      this.#gradient ??= characters.map(() => characters.map(() => 0));
      for (const [i, ids] of targets.entries()) {
        const gradientRow = this.#gradient[Number(data[i]?.modelInput[0])] ?? [];
        for (const [t, target] of ids.entries()) addSlope(gradientRow, rows[i] ?? [], target, gradients[i]?.[t] ?? 0);
      }
      const outputs = logprobs.map((row) => ({ logprobs: row }));
      return { loss: total, outputs, metrics: { ...metrics, 'loss/sum': total }, trainingTokens: 0 };
    });
  }

  optimStep(options: { readonly learningRate?: number; readonly signal?: AbortSignal | undefined } = {}) {
    return this.#run('optim-step', options, options.signal, (): OptimStepOutput => {
      const rate = 10_000 * (options.learningRate ?? 1e-4);
      const gradient = this.#gradient ?? [];
      this.#weights = this.#weights.map((row, q) => row.map((w, a) => w - rate * (gradient[q]?.[a] ?? 0)));
      this.#gradient = undefined;
      return { metrics: { 'optim/lr': options.learningRate ?? 1e-4 } };
    });
  }

  saveWeightsAndGetSamplingClient({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<Sampler> {
    return this.#run('save-weights', undefined, signal, () => this.snapshot());
  }

  /** The weights as they are after the calls so far. */
  saveState({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<Weights> {
    return this.#run('save-state', undefined, signal, () => structuredClone(this.#weights));
  }

  /** One after the other, in call order, as a session does. */
  #run<T>(name: string, detail: unknown, signal: AbortSignal | undefined, work: () => T): Promise<T> {
    const result = this.#queue.then(async () => {
      await this.#log.enter(name, detail, signal);
      return work();
    });
    this.#queue = result.catch(() => undefined);
    return result;
  }

  /** Σ −w·lp for cross entropy, Σ −w·r·A otherwise; every position but the one before the answer has weight 0. */
  #pass<L extends LossName>(
    data: readonly DatumFor<L>[],
    loss: LossName,
    gradient: number[][] | undefined,
  ): ForwardBackwardOutput {
    const outputs = data.map((datum) => {
      const row = Number(datum.modelInput[0]);
      const logRow = rowOf(this.#weights, Array.from(datum.modelInput));
      // true: every loss has these inputs, flat, in these tests
      const inputs = datum.lossFnInputs as Readonly<Partial<Record<string, readonly number[]>>>;
      const targets = inputs.targetTokens ?? [];
      const logprobs = targets.map((target) => logRow[target] ?? 0);
      let total = 0;
      for (const [t, target] of targets.entries()) {
        const weight = inputs.weights?.[t] ?? 0;
        if (weight === 0) continue;
        const lp = logprobs[t] ?? 0;
        const ratio = Math.exp(lp - (inputs.logprobs?.[t] ?? 0));
        const advantage = inputs.advantages?.[t] ?? 0;
        total += loss === 'cross_entropy' ? -weight * lp : -weight * ratio * advantage;
        const slope = loss === 'cross_entropy' ? -weight : -weight * ratio * advantage;
        const gradientRow = gradient?.[row];
        if (gradientRow === undefined) continue;
        addSlope(gradientRow, logRow, target, slope);
      }
      return { logprobs, loss: total };
    });
    const trainingTokens = data.reduce((sum, { modelInput }) => sum + modelInput.length, 0);
    return { outputs, metrics: { 'loss/sum': outputs.reduce((sum, { loss: l }) => sum + l, 0) }, trainingTokens };
  }
}
