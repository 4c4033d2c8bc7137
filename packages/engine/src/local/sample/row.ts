/** One sequence being sampled. */
import type { SampledSequence, SamplingParams, StopReason } from '@loopwright/protocol';
import type { OnToken } from '../../engine.js';
import { uniform } from '../random.js';
import type { HeadKind } from './head-graph.js';
import type { Snapshot } from './snapshot.js';

/** Turns ids into text piece by piece, holding back half characters. */
export interface TextStream {
  push(id: number): string;
}

export interface RowOptions {
  readonly snapshot: Snapshot;
  readonly prompt: Int32Array;
  readonly params: SamplingParams;
  readonly sampleIndex: number;
  readonly stopIds: ReadonlySet<number>;
  /** New tokens at most, the end of the context taken into account. */
  readonly limit: number;
  /** Needed for stop strings only. */
  readonly text: TextStream | undefined;
  readonly onToken: OnToken | undefined;
}

export class Row {
  readonly snapshot: Snapshot;
  readonly params: SamplingParams;
  readonly tokens: number[] = [];
  readonly logprobs: number[] = [];
  /** Positions in the cache: the prompt but for its last token, then what was decoded but for the newest. */
  cached: number;
  /** The token that the next step reads. */
  newest: number;
  stopReason: StopReason | undefined;
  /** The model gave NaN or infinity. */
  isBroken = false;
  readonly #options: RowOptions;
  #tail = '';

  constructor(options: RowOptions) {
    this.snapshot = options.snapshot;
    this.params = options.params;
    this.cached = options.prompt.length - 1;
    this.newest = options.prompt.at(-1)!;
    this.#options = options;
  }

  get kind(): HeadKind {
    const { temperature, topK, topP } = this.params;
    if (temperature === 0) return 'greedy';
    if (topK > 0 || topP < 1) return 'logits';
    return temperature === 1 ? 'draw' : 'scaled';
  }

  /** The uniform number of the next draw: a hash of seed, sample index and position, whatever else is in the batch. */
  get draw(): number {
    return uniform(this.params.seed, this.#options.sampleIndex, this.tokens.length);
  }

  /** Positions the cache may need before this row ends. */
  get maxPositions(): number {
    return this.#options.prompt.length + this.#options.limit;
  }

  /** Takes the drawn token; sets `stopReason` when the row is done. */
  push(token: number, logprob: number): void {
    if (!Number.isFinite(logprob)) {
      this.isBroken = true;
      this.stopReason ??= 'stop';
      return;
    }
    this.tokens.push(token);
    this.logprobs.push(logprob);
    this.cached++;
    this.newest = token;
    const { onToken, sampleIndex } = this.#options;
    onToken?.({ sample: sampleIndex, position: this.tokens.length - 1, id: token, logprob });
    if (this.#options.stopIds.has(token) || this.#meetsStopString(token)) this.stopReason = 'stop';
    else if (this.tokens.length >= this.#options.limit) this.stopReason = 'length';
  }

  #meetsStopString(token: number): boolean {
    const { text, params } = this.#options;
    if (text === undefined || params.stop.length === 0) return false;
    this.#tail += text.push(token);
    if (params.stop.some((stop) => this.#tail.includes(stop))) return true;
    const longest = Math.max(...params.stop.map((stop) => stop.length));
    this.#tail = this.#tail.slice(-longest);
    return false;
  }

  result(): SampledSequence {
    return {
      tokens: Int32Array.from(this.tokens),
      logprobs: Float32Array.from(this.logprobs),
      stopReason: this.stopReason ?? 'length',
    };
  }
}
