/** All sampling of one engine: requests wait for room, join a batch, and are decoded a few steps at a time. */
import type { SampleResult, SamplingOperation } from '@loopwright/protocol';
import type { CallOptions, OnToken } from '../../engine.js';
import { DecodeBatch, type PromptRows } from './batch.js';
import type { SamplerEvent } from './events.js';
import { Prefills } from './prefill.js';
import { Row, type TextStream } from './row.js';
import { divergedWeights, type Scores } from './score.js';
import { ScoreQueue, type ScoreSubmission } from './score-queue.js';
import type { Snapshot } from './snapshot.js';

export type SampleSpec = Omit<Extract<SamplingOperation, { type: 'sample' }>, 'type' | 'weights'>;

export interface SamplerOptions {
  /** Rows at most in one batch. */
  readonly maxRows: number;
  /** Bytes of keys and values at most in one batch. */
  readonly maxCacheBytes: number;
  readonly newTextStream: () => TextStream;
  readonly onEvent?: ((event: SamplerEvent) => void) | undefined;
  /** Told when work came up by itself, which {@link Sampler.runSlice} is to do. */
  readonly onWork?: () => void;
}

interface Request {
  readonly spec: SampleSpec;
  readonly snapshot: Snapshot;
  readonly rows: Row[];
  /** Rows not yet given to a batch. */
  waiting: Row[];
  readonly resolve: (sequences: SampleResult['sequences']) => void;
  readonly reject: (error: unknown) => void;
}

/** Tokens of prompts that one prefill takes at most. */
const prefillTokens = 2048;
/** Share of the bytes of a batch that may be taken, besides, by prompts that are kept. */
export const keptPromptsShare = 1 / 8;
/** Decoding goes on in one slice until this much time has passed. */
const sliceMs = 30;

export class Sampler {
  readonly #options: SamplerOptions;
  readonly #batches = new Set<DecodeBatch>();
  readonly #requests = new Set<Request>();
  readonly #scores: ScoreQueue;
  readonly #prefills: Prefills;
  #turn = 0;
  /** Milliseconds that scoring has had more than decoding, counted from when both last had work. */
  #scoringAheadMs = 0;

  constructor(options: SamplerOptions) {
    const { maxCacheBytes, onEvent } = options;
    this.#options = options;
    this.#scores = new ScoreQueue(onEvent);
    this.#prefills = new Prefills({ maxBytes: maxCacheBytes * keptPromptsShare, onEvent });
  }

  /** Nobody samples from it any more. */
  forget(snapshot: Snapshot): void {
    this.#prefills.forget(snapshot);
  }

  get idle(): boolean {
    return this.#decodingIdle && this.#scores.idle;
  }

  get #decodingIdle(): boolean {
    return this.#requests.size === 0 && this.#batches.size === 0;
  }

  /** Queues a request; {@link runSlice} works on it. An abort frees its rows at the next slice. */
  async submit(
    spec: SampleSpec,
    snapshot: Snapshot,
    { signal, onToken }: Pick<CallOptions, 'signal' | 'onToken'> = {},
  ): Promise<SampleResult> {
    const { prompt, promptLogprobs, topkPromptLogprobs: topK, promptTargets: targets } = spec;
    const isScored = promptLogprobs || topK > 0 || targets !== undefined;
    const scoring = isScored ? this.score(prompt, { snapshot, topK, targets, signal }) : undefined;
    const decoding = this.#decode(spec, { snapshot, signal, scoring, onToken }).then((sequences) =>
      this.#withLikeliest(sequences, spec, { snapshot, signal }),
    );
    // Both have ended when this does, so that the snapshot is not in use any more.
    const [scored, decoded] = await Promise.allSettled([scoring, decoding]);
    if (scored.status === 'rejected') throw scored.reason;
    if (decoded.status === 'rejected') throw decoded.reason;
    const scores = scored.value;
    return {
      sequences: decoded.value,
      ...(scores !== undefined && promptLogprobs ? { promptLogprobs: lastOf(scores.logprobs, spec) } : {}),
      ...(scores !== undefined && targets !== undefined ? { promptTargetLogprobs: scores.targets } : {}),
      ...(scores !== undefined && topK > 0 ? { topkPromptLogprobs: lastRowsOf(scores.top, spec) } : {}),
      prefillTokens: prompt.length,
    };
  }

  /** The likeliest tokens at each position of what was sampled: scored as a prompt is, once it is whole. */
  async #withLikeliest(
    sequences: SampleResult['sequences'],
    { prompt, topkSampleLogprobs: topK = 0 }: SampleSpec,
    { snapshot, signal }: { readonly snapshot: Snapshot; readonly signal: AbortSignal | undefined },
  ): Promise<SampleResult['sequences']> {
    if (topK === 0) return sequences;
    return Promise.all(
      sequences.map(async (sequence) => {
        const whole = new Int32Array(prompt.length + sequence.tokens.length);
        whole.set(prompt);
        whole.set(sequence.tokens, prompt.length);
        const scores = this.score(whole, { snapshot, topK, signal });
        this.#options.onWork?.();
        const { top } = await scores;
        return { ...sequence, topkLogprobs: top.slice(prompt.length) };
      }),
    );
  }

  /** Queues a prompt to be scored. */
  score(prompt: Int32Array, options: ScoreSubmission): Promise<Scores> {
    if (options.signal?.aborted) return Promise.reject(options.signal.reason);
    return this.#scores.submit(prompt, options);
  }

  #decode(
    spec: SampleSpec,
    {
      snapshot,
      signal,
      scoring,
      onToken,
    }: {
      snapshot: Snapshot;
      signal: AbortSignal | undefined;
      scoring: Promise<Scores> | undefined;
      onToken: OnToken | undefined;
    },
  ): Promise<SampleResult['sequences']> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const { prompt, params, numSamples } = spec;
    const { contextLength, eosTokenIds } = snapshot.model.config;
    const stopIds = new Set([...params.stopTokenIds, ...(params.ignoreEos === true ? [] : eosTokenIds)]);
    const limit = Math.min(params.maxTokens, contextLength - prompt.length);
    const rows = Array.from({ length: numSamples }, (_, sampleIndex) => {
      const text = params.stop.length > 0 ? this.#options.newTextStream() : undefined;
      return new Row({ snapshot, prompt, params, sampleIndex, stopIds, limit, text, onToken });
    });
    return new Promise((resolve, reject) => {
      const cancel = () => this.#drop(request, signal?.reason);
      const settled = () => signal?.removeEventListener('abort', cancel);
      const request: Request = {
        spec,
        snapshot,
        rows,
        waiting: [...rows],
        resolve: (result) => {
          settled();
          resolve(result);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      };
      this.#requests.add(request);
      signal?.addEventListener('abort', cancel, { once: true });
      scoring?.catch((error: unknown) => this.#drop(request, error));
    });
  }

  failAll(error: unknown): void {
    for (const request of [...this.#requests]) this.#drop(request, error);
    this.#scores.failAll(error);
  }

  #drop(request: Request, reason: unknown): void {
    if (!this.#requests.delete(request)) return;
    for (const row of request.rows) row.stopReason ??= 'stop';
    request.reject(reason);
  }

  /** Does one bounded piece of work. Scoring and decoding have equal time while both have work. */
  async runSlice(): Promise<void> {
    if (this.#scores.idle || this.#decodingIdle) this.#scoringAheadMs = 0;
    const isScoring = !this.#scores.idle && (this.#decodingIdle || this.#scoringAheadMs <= 0);
    const start = performance.now();
    await (isScoring ? this.#scores.runSlice() : this.#runDecodingSlice());
    this.#scoringAheadMs += (isScoring ? 1 : -1) * (performance.now() - start);
  }

  /** Prefills of prompts, or some decoding steps of one batch. */
  async #runDecodingSlice(): Promise<void> {
    if (await this.#admit()) return;
    const batches = [...this.#batches];
    const batch = batches[this.#turn++ % Math.max(1, batches.length)];
    if (batch === undefined) return;
    const until = performance.now() + sliceMs;
    try {
      batch.removeRows((row) => row.stopReason !== undefined);
      while (batch.size > 0 && performance.now() < until) {
        this.#options.onEvent?.({ type: 'decode-step', rows: batch.size, versions: batch.snapshots.length });
        await batch.step();
        if (this.#settle()) break;
      }
    } catch (error) {
      this.#fail(batch, error);
      return;
    }
    this.#settle();
    this.#closeIfEmpty(batch);
  }

  /** Lets waiting rows of one version join a batch, oldest request first. True when some did. */
  async #admit(): Promise<boolean> {
    const first = this.#firstWithRoom();
    if (first === undefined) return false;
    const { snapshot } = first;
    const { batch = new DecodeBatch(snapshot, this.#prefills), ...place } = this.#place(snapshot);
    let { room } = place;
    let prefilled = 0;
    const prompts = new Map<string, PromptRows>();
    const takers: Request[] = [];
    for (const request of this.#requests) {
      if (request.snapshot !== snapshot || request.waiting.length === 0) continue;
      const tokens = request.spec.prompt.subarray(0, -1);
      const key = this.#prefills.key(snapshot, tokens);
      const cost = prompts.has(key) || this.#prefills.has(key) ? 0 : tokens.length;
      if (room === 0 || (prefilled > 0 && prefilled + cost > prefillTokens)) break;
      const rows = request.waiting.slice(0, room);
      request.waiting = request.waiting.slice(rows.length);
      const known = prompts.get(key);
      if (known === undefined) prompts.set(key, { snapshot, tokens, rows });
      else known.rows.push(...rows);
      takers.push(request);
      room -= rows.length;
      prefilled += cost;
    }
    this.#batches.add(batch);
    try {
      await batch.join([...prompts.values()]);
    } catch (error) {
      // Memory may be what was missing.
      this.#prefills.clear();
      for (const request of takers) this.#drop(request, error);
      this.#closeIfEmpty(batch);
    }
    return true;
  }

  /** The oldest request with waiting rows that there is room for. Each version is looked at once: hundreds of requests may wait. */
  #firstWithRoom(): Request | undefined {
    const full = new Set<Snapshot>();
    for (const request of this.#requests) {
      const { waiting, snapshot } = request;
      if (waiting.length === 0 || full.has(snapshot)) continue;
      if (this.#place(snapshot).room > 0) return request;
      full.add(snapshot);
    }
    return undefined;
  }

  /**
   * Where waiting rows of a version may go, and how many: to its own rows; else beside those of other versions, if all that wait have room
   * there; else into a batch of their own, so that a version never waits for the rows of another to end. Where they go changes no bit.
   */
  #place(snapshot: Snapshot): { readonly batch?: DecodeBatch; readonly room: number } {
    const roomIn = (batch: DecodeBatch): number => this.#limit([snapshot, ...batch.snapshots]) - batch.size;
    const own = [...this.#batches].find((batch) => batch.snapshots.includes(snapshot));
    if (own !== undefined) return { batch: own, room: Math.max(0, roomIn(own)) };
    const waiting = [...this.#requests].reduce((sum, r) => sum + (r.snapshot === snapshot ? r.waiting.length : 0), 0);
    const shared = [...this.#batches].find((batch) => batch.takes(snapshot) && roomIn(batch) >= waiting);
    if (shared !== undefined) return { batch: shared, room: roomIn(shared) };
    return { room: this.#limit([snapshot]) };
  }

  /** Rows at most of a batch of these versions, as long as the longest of them may become. */
  #limit(snapshots: readonly Snapshot[]): number {
    const { layers, kvHeads, headDim } = snapshots[0]!.model.config;
    const longest = Math.max(
      1,
      ...[...this.#requests].filter((r) => snapshots.includes(r.snapshot)).map((r) => r.rows[0]?.maxPositions ?? 1),
    );
    const bytesPerRow = 2 * layers * kvHeads * headDim * 4 * longest;
    const byMemory = Math.max(1, Math.floor(this.#options.maxCacheBytes / bytesPerRow));
    return Math.min(this.#options.maxRows, byMemory);
  }

  /** Answers requests whose rows are all done. True when rows wait for the room that became free. */
  #settle(): boolean {
    for (const request of this.#requests) {
      if (request.rows.some((row) => row.isBroken)) {
        this.#drop(request, divergedWeights());
        continue;
      }
      if (request.rows.some((row) => row.stopReason === undefined)) continue;
      this.#requests.delete(request);
      const sequences = request.rows.map((row) => row.result());
      request.resolve(sequences);
    }
    return this.#firstWithRoom() !== undefined;
  }

  #fail(batch: DecodeBatch, error: unknown): void {
    const failed = batch.snapshots;
    for (const request of [...this.#requests]) if (failed.includes(request.snapshot)) this.#drop(request, error);
    batch.removeRows(() => true);
    this.#closeIfEmpty(batch);
  }

  #closeIfEmpty(batch: DecodeBatch): void {
    if (batch.size > 0) return;
    this.#batches.delete(batch);
    batch.release();
  }
}

/** NaN for all but the last that were asked for. */
function lastOf(logprobs: Float32Array, { promptLogprobsLast }: SampleSpec): Float32Array {
  if (promptLogprobsLast === undefined) return logprobs;
  return logprobs.slice().fill(Number.NaN, 0, Math.max(0, logprobs.length - promptLogprobsLast));
}

/** Empty rows for all but the last that were asked for. */
function lastRowsOf(rows: Scores['top'], { promptLogprobsLast = rows.length }: SampleSpec): Scores['top'] {
  return rows.map((row, index) => (index < rows.length - promptLogprobsLast ? [] : row));
}
