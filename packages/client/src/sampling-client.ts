/** SamplingClient: draws from, and scores with, one set of weights. */
import {
  complaint,
  LoopwrightError,
  type OperationResults,
  type SampleResult,
  type StopReason,
  samplingRanges,
  type TokenLogprob,
} from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import {
  completeSamplingParams,
  decodeSamplingResult,
  defaultMaxTokens,
  encodeSamplingRequest,
  readTokens,
  type SampleChoice,
  type SamplingRequest,
  type WeightsChoice,
} from '@loopwright/wires/sagemaker';
import { arns, checkedArn } from './arns.js';
import type { Catalog } from './catalog.js';
import { FailureLog, unawaitedError } from './failure-log.js';
import { OperationFuture } from './operation-future.js';
import { OperationTask } from './operation-task.js';
import type { SessionLink } from './session-link.js';
import type { CallOptions } from './transport.js';

/** Token ids. */
export type Tokens = readonly number[] | Int32Array;

export interface SampleOptions extends CallOptions {
  /** 1–1000; default 1. */
  readonly numSamples?: number;
  /** New tokens per sample at most; default 512. */
  readonly maxTokens?: number;
  /** 0–2, 0 is greedy; default 1. */
  readonly temperature?: number;
  /** Keep the k likeliest; default −1, all. */
  readonly topK?: number;
  /** Keep the smallest set that reaches this probability; default 1, all. */
  readonly topP?: number;
  /** Same seed, prompt and weights: same tokens. Drawn by the server when absent. */
  readonly seed?: number;
  /** End when one of these appears in the text; its tokens are kept. */
  readonly stop?: string | readonly string[];
  /** End after one of these ids, which is kept; the model's own end ids always count. */
  readonly stopTokenIds?: readonly number[];
  /** Default false. */
  readonly includePromptLogprobs?: boolean;
  /** k of the likeliest tokens at each prompt position, 0–20; default 0, none. */
  readonly topkPromptLogprobs?: number;
}

export interface SampledTokens {
  readonly tokens: number[];
  /** One per token, of the model at temperature 1 without truncation. */
  readonly logprobs: number[];
  readonly stopReason: StopReason;
}

export interface SampleOutput {
  readonly sequences: SampledTokens[];
  /** One per prompt token; the first has no predecessor and is null. Only when asked for. */
  readonly promptLogprobs?: (number | null)[];
  /** One list per prompt token, likeliest first; the first is empty. Only when asked for. */
  readonly topkPromptLogprobs?: TokenLogprob[][];
}

export interface SamplingClientParts {
  readonly link: SessionLink;
  readonly catalog: Catalog;
  readonly baseModel: string;
  readonly modelPackageArn: string | undefined;
  /** A child of the log of the training client that made this one. */
  readonly log?: FailureLog;
  /** Ends the session, when this client has one of its own. */
  readonly onClose?: () => Promise<void>;
}

/**
 * Made by a service or training client. It stays bound to the version it was made from; after an optimizer step, make a new
 * one from a new save. Without a version it reads the session's latest save, and the base model before the first.
 *
 * Disposing waits for what is under way. A client that `ServiceClient.createSamplingClient` made has a session of its own,
 * which is then stopped.
 */
export class SamplingClient implements AsyncDisposable {
  readonly modelPackageArn: string | undefined;
  readonly baseModel: string;
  readonly #parts: SamplingClientParts;
  readonly #log: FailureLog;
  readonly #open = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  /** Made by clients. */
  constructor(parts: SamplingClientParts) {
    this.modelPackageArn = parts.modelPackageArn;
    this.baseModel = parts.baseModel;
    this.#parts = parts;
    this.#log = parts.log ?? new FailureLog();
  }

  /** The tokenizer of the base model. */
  getTokenizer(options: CallOptions = {}): Promise<Tokenizer> {
    return this.#parts.catalog.tokenizer(this.baseModel, options);
  }

  /**
   * Draws `numSamples` continuations of the prompt. Requests run beside each other and beside training: start many, then await.
   *
   * @param prompt one or more token ids
   * @throws at once: `invalid_argument` naming the option, `disposed`; by the future: `context_length_exceeded`, `unknown_version`, …
   */
  sample(prompt: Tokens, options: SampleOptions = {}): OperationFuture<SampleOutput> {
    const { signal, ...rest } = options;
    return this.#start('sample', sampleRequest(prompt, rest, this.#weights()), sampleOutput, signal);
  }

  /**
   * Log-probability of each prompt token given those before it, at temperature 1.
   *
   * @returns as many values as the prompt has tokens; the first is null
   */
  computeLogprobs(prompt: Tokens, { signal }: CallOptions = {}): OperationFuture<(number | null)[]> {
    const tokens = readTokens(prompt, 'prompt');
    const request = { type: 'compute-logprobs', prompt: tokens, weights: this.#weights() } as const;
    const read = ({ logprobs }: { readonly logprobs: Float32Array }) => promptNumbers(logprobs, tokens.length);
    return this.#start('compute-logprobs', request, read, signal);
  }

  /** Waits for what is under way, then ends the session if it is this client's own. @throws failures that nobody awaited */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#open);
    await this.#parts.onClose?.();
    const failures = this.#log.take();
    if (failures.length > 0) throw unawaitedError(failures);
  }

  #weights(): WeightsChoice {
    return this.modelPackageArn === undefined ? { type: 'latest' } : { type: 'version', id: this.modelPackageArn };
  }

  #start<T extends 'sample' | 'compute-logprobs', R>(
    type: T,
    request: SamplingRequest,
    read: (result: OperationResults[T]) => R,
    signal: AbortSignal | undefined,
  ): OperationFuture<R> {
    if (this.#closing !== undefined) {
      throw new LoopwrightError({ code: 'disposed', message: `${type}: this sampling client was closed` });
    }
    const task = new OperationTask({
      type,
      encode: () => encodeSamplingRequest(request, { arns }),
      decode: (body) => decodeSamplingResult(body, type),
    });
    const result = task.ended.then(read);
    const forget = () => this.#open.delete(result);
    this.#open.add(result);
    result.then(forget, forget);
    const future = new OperationFuture({ result, parts: [task], log: this.#log, signal });
    this.#parts.link.startSampling(task);
    return future;
  }
}

function sampleRequest(prompt: Tokens, options: Omit<SampleOptions, 'signal'>, weights: WeightsChoice): SampleChoice {
  const {
    numSamples = 1,
    maxTokens = defaultMaxTokens,
    stop,
    includePromptLogprobs = false,
    topkPromptLogprobs = 0,
  } = options;
  const { numSamples: _n, includePromptLogprobs: _p, topkPromptLogprobs: _k, ...params } = options;
  checkRange('numSamples', numSamples, samplingRanges.numSamples);
  checkRange('topkPromptLogprobs', topkPromptLogprobs, samplingRanges.topkPromptLogprobs);
  return {
    type: 'sample',
    prompt: readTokens(prompt, 'prompt'),
    numSamples,
    params: completeSamplingParams(
      {
        ...params,
        maxTokens,
        stop: typeof stop === 'string' ? [stop] : stop,
        stopTokenIds: listOf(options.stopTokenIds),
      },
      'options',
    ),
    weights,
    promptLogprobs: includePromptLogprobs,
    topkPromptLogprobs,
  };
}

function listOf<T>(values: readonly T[] | undefined): readonly T[] | undefined {
  return values === undefined ? undefined : Array.from(values);
}

function checkRange(name: string, value: number, { min, max }: { readonly min: number; readonly max: number }): void {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw complaint({ field: `options.${name}`, expected: `an integer from ${min} to ${max}`, got: String(value) });
  }
}

/** Per-position values of a prompt; the first has no predecessor. @throws `internal` when their number is not that of the prompt */
function promptNumbers(values: Float32Array, length: number): (number | null)[] {
  if (values.length !== length) {
    throw new LoopwrightError({
      code: 'internal',
      message: `logprobs: expected ${length} values, as many as the prompt has tokens, got ${values.length}`,
    });
  }
  return Array.from(values, (value, index) => (index === 0 ? null : value));
}

function sampleOutput({ sequences, promptLogprobs, topkPromptLogprobs }: SampleResult): SampleOutput {
  return {
    sequences: sequences.map(({ tokens, logprobs, stopReason }) => ({
      tokens: Array.from(tokens),
      logprobs: Array.from(logprobs),
      stopReason,
    })),
    ...(promptLogprobs === undefined ? {} : { promptLogprobs: promptNumbers(promptLogprobs, promptLogprobs.length) }),
    ...(topkPromptLogprobs === undefined ? {} : { topkPromptLogprobs: topkPromptLogprobs.map((list) => [...list]) }),
  };
}

/** A version checked where a caller names it. */
export function versionChoice(modelPackageArn: string | undefined): string | undefined {
  return modelPackageArn === undefined ? undefined : checkedArn(modelPackageArn, 'modelPackageArn');
}
