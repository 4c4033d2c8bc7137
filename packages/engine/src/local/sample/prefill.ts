/** Keys and values of prompts: computed by one run over the prompt, and the recent ones kept for others that begin alike. */
import { floats } from '../ort/runtime.js';
import type { SamplerEvent } from './events.js';
import { padTo, runSequence, sequenceFeeds } from './sequence.js';
import { keysOutput, valuesOutput } from './sequence-graph.js';
import type { Snapshot } from './snapshot.js';

export interface Prefill {
  /** Keys of layer l at 2l, values at 2l + 1: [K, stride, d] each, of which the first `count` positions are the prompt's. */
  readonly arrays: readonly Float32Array[];
  readonly stride: number;
  readonly count: number;
}

async function prefill(snapshot: Snapshot, tokens: Int32Array): Promise<Prefill> {
  const { layers } = snapshot.model.config;
  const names = Array.from({ length: layers }, (_, layer) => [keysOutput(layer), valuesOutput(layer)]).flat();
  const kind = { type: 'prefill', adapted: snapshot.fused.isAdapted } as const;
  const outputs = await runSequence(snapshot, kind, sequenceFeeds(snapshot, tokens), names);
  return {
    arrays: names.map((name) => floats(outputs, name)),
    stride: padTo(tokens.length),
    count: tokens.length,
  };
}

export interface PrefillsOptions {
  /** Bytes at most of what is kept, but that the newest is always kept. */
  readonly maxBytes: number;
  readonly onEvent?: ((event: SamplerEvent) => void) | undefined;
}

/**
 * The recent prefills by snapshot and exact tokens, the least recently used first. What is taken from here has the bits of what would
 * be computed: a prefill is a function of snapshot and tokens alone.
 */
export class Prefills {
  readonly #options: PrefillsOptions;
  /** Numbers in place of snapshots, so that a kept prompt keeps no weights in memory. */
  readonly #numbers = new WeakMap<Snapshot, number>();
  #snapshots = 0;
  readonly #kept = new Map<string, Prefill>();
  #bytes = 0;

  constructor(options: PrefillsOptions) {
    this.#options = options;
  }

  /** A name for these tokens on this snapshot. */
  key(snapshot: Snapshot, tokens: Int32Array): string {
    let number = this.#numbers.get(snapshot);
    if (number === undefined) {
      number = this.#snapshots++;
      this.#numbers.set(snapshot, number);
    }
    return `${number}:${tokens}`;
  }

  has(key: string): boolean {
    return this.#kept.has(key);
  }

  async get(snapshot: Snapshot, tokens: Int32Array): Promise<Prefill> {
    const key = this.key(snapshot, tokens);
    const known = this.#kept.get(key);
    this.#options.onEvent?.({ type: 'prompt-prefill', tokens: tokens.length, isReused: known !== undefined });
    if (known !== undefined) {
      this.#kept.delete(key);
      this.#kept.set(key, known);
      return known;
    }
    const made = await prefill(snapshot, tokens);
    this.#kept.set(key, made);
    this.#bytes += sizeOf(made);
    for (const [oldest, kept] of this.#kept) {
      if (this.#bytes <= this.#options.maxBytes || kept === made) break;
      this.#kept.delete(oldest);
      this.#bytes -= sizeOf(kept);
    }
    return made;
  }

  /** A snapshot that is never sampled from again; should its version be read once more, that is another one. */
  forget(snapshot: Snapshot): void {
    const number = this.#numbers.get(snapshot);
    if (number === undefined) return;
    for (const [key, kept] of this.#kept) {
      if (!key.startsWith(`${number}:`)) continue;
      this.#kept.delete(key);
      this.#bytes -= sizeOf(kept);
    }
  }

  /** Lets go of all. */
  clear(): void {
    this.#kept.clear();
    this.#bytes = 0;
  }
}

function sizeOf({ arrays }: Prefill): number {
  return arrays.reduce((sum, { byteLength }) => sum + byteLength, 0);
}
