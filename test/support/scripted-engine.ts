/** An engine that says what it is told to, token by token, for tests of what is made of a model's words. */
import type { CallOptions, SampleRequest } from '@loopwright/engine';
import { LoopwrightError, type SampleResult } from '@loopwright/protocol';
import { FakeEngine, type FakeEngineOptions } from '@loopwright/testkit';

/** One answer. */
export interface Script {
  readonly ids: readonly number[];
  /** Ids in front of which the engine waits until {@link ScriptedEngine.goOn} is called. */
  readonly pauseAt?: number;
  /** Fails with this in front of the id at `pauseAt`. */
  readonly fails?: LoopwrightError;
}

const drawnLogprob = -0.5;

/** The id behind the drawn one is likelier; the drawn one has another last bit, as of another pass; then those further behind. */
const likeliest = (id: number, count: number) =>
  Array.from({ length: count }, (_, i) => ({
    tokenId: i === 0 ? id + 1 : i === 1 ? id : id + i,
    logprob: i === 1 ? drawnLogprob - 1e-6 : drawnLogprob * (i === 0 ? 0.5 : i + 1),
  }));

export class ScriptedEngine extends FakeEngine {
  readonly #scripts: Script[] = [];
  /** Requests that came, in order. */
  readonly requests: SampleRequest[] = [];
  /** Why calls ended before their time. */
  readonly aborted: unknown[] = [];
  /** What is said where nothing was told. */
  readonly #otherwise: (request: SampleRequest) => Script;
  #release: () => void = () => {};
  #paused: Promise<void> = Promise.resolve();
  #onPause: () => void = () => {};

  constructor({
    otherwise = () => ({ ids: [] }),
    ...options
  }: FakeEngineOptions & { readonly otherwise?: ((request: SampleRequest) => Script) | undefined } = {}) {
    super(options);
    this.#otherwise = otherwise;
  }

  /** What the next requests are answered with, one for each of their samples. */
  say(...scripts: readonly Script[]): void {
    this.#scripts.push(...scripts);
  }

  /** Resolves when an answer has come to its pause. */
  pause(): Promise<void> {
    this.#paused = new Promise((resolve) => {
      this.#release = resolve;
    });
    return new Promise((resolve) => {
      this.#onPause = resolve;
    });
  }

  goOn(): void {
    this.#release();
  }

  override async sample(request: SampleRequest, options: CallOptions = {}): Promise<SampleResult> {
    this.requests.push(request);
    const sequences: SampleResult['sequences'][number][] = [];
    for (let sample = 0; sample < request.numSamples; sample++) {
      const script = this.#scripts.shift() ?? this.#otherwise(request);
      const ids = script.ids.slice(0, request.params.maxTokens);
      for (const [position, id] of ids.entries()) {
        if (position === script.pauseAt) await this.#wait(script, options);
        options.onToken?.({ sample, position, id, logprob: drawnLogprob });
      }
      const stopReason = ids.length < script.ids.length ? 'length' : 'stop';
      const topk = request.topkSampleLogprobs ?? 0;
      sequences.push({
        tokens: Int32Array.from(ids),
        logprobs: new Float32Array(ids.length).fill(drawnLogprob),
        stopReason,
        ...(topk === 0 ? {} : { topkLogprobs: ids.map((id) => likeliest(id, topk)) }),
      });
    }
    return { sequences, prefillTokens: request.prompt.length };
  }

  async #wait({ fails }: Script, { signal }: CallOptions): Promise<void> {
    this.#onPause();
    const gone = new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => {
        this.aborted.push(signal.reason);
        reject(new LoopwrightError({ code: 'cancelled', message: 'sampling was cancelled' }));
      });
    });
    await Promise.race([this.#paused, gone]);
    if (fails !== undefined) throw fails;
  }
}
