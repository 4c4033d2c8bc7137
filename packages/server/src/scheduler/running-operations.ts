/** The operations of a session that run now: their start, their progress, and how they are asked to give up. */
import type { CallOptions, OnToken } from '@loopwright/engine';
import type { TokenUsage } from '@loopwright/protocol';
import type { Clock } from '../clock.js';
import type { OperationRecord } from '../operations/operation-record.js';
import { cancelled } from './endings.js';
import { Trace } from './trace.js';

/** Who wants the tokens of a sampling operation as they are drawn. */
export interface TokenListener {
  readonly onToken: OnToken;
  /** Tokens of its prompt: part of what it used as soon as one was drawn. */
  readonly prefillTokens: number;
}

export interface Running {
  readonly record: OperationRecord;
  readonly startedAtMs: number;
  readonly abort: AbortController;
  /** Share done, 0 to 1, once the engine has told it. */
  done: number | undefined;
  /** How long the engine worked in the last attempt. */
  engineMs: number | null;
  /** Does the engine's work and takes its time. */
  readonly timed: <T>(work: () => Promise<T>) => Promise<T>;
  /** Resolves when its ending is written, or it was let go. */
  readonly finished: Promise<void>;
  /** What its listener was told so far; undefined without one, or before the first token. */
  readonly told: () => TokenUsage | undefined;
  /** What the engine is called with. */
  readonly callOptions: CallOptions & { readonly signal: AbortSignal };
  /** To be called once, at the end. */
  readonly close: () => void;
}

export class RunningOperations {
  readonly trace = new Trace();
  readonly #running = new Map<string, Running>();
  readonly #clock: Clock;
  readonly #listeners = new WeakMap<OperationRecord, TokenListener>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get(id: string): Running | undefined {
    return this.#running.get(id);
  }

  count(kind: OperationRecord['kind']): number {
    return [...this.#running.values()].filter(({ record }) => record.kind === kind).length;
  }

  /** Tells the tokens of a sampling operation that has not begun. */
  listen(record: OperationRecord, listener: TokenListener): void {
    this.#listeners.set(record, listener);
  }

  begin(record: OperationRecord): Running {
    const clock = this.#clock;
    const startedAtMs = clock.now();
    const { id: operationId, kind, type } = record;
    const order = record.kind === 'training' ? { sequenceNumber: record.sequenceNumber } : {};
    const entry = this.trace.start({ operationId, kind, type, ...order, startedAtMs });
    const abort = new AbortController();
    const listener = this.#listeners.get(record);
    const counted = listener === undefined ? undefined : countTokens(listener);
    let markFinished: () => void = () => {};
    const finished = new Promise<void>((resolve) => {
      markFinished = resolve;
    });
    const running: Running = {
      record,
      startedAtMs,
      abort,
      done: undefined,
      engineMs: null,
      timed: async (work) => {
        const startMs = clock.elapsedMs();
        try {
          return await work();
        } finally {
          running.engineMs = clock.elapsedMs() - startMs;
        }
      },
      finished,
      told: () => counted?.told(),
      callOptions: {
        signal: abort.signal,
        onProgress: (done) => {
          running.done = done;
          entry.slice(clock.now(), done);
        },
        ...(counted === undefined ? {} : { onToken: counted.onToken }),
      },
      close: () => {
        this.#running.delete(operationId);
        entry.end(clock.now());
        markFinished();
      },
    };
    this.#running.set(operationId, running);
    return running;
  }

  /** Cancels all and waits until they have ended, for `graceMs` at most. */
  async giveUp(why: string, graceMs: number): Promise<void> {
    const running = [...this.#running.values()];
    if (running.length === 0) return;
    for (const { abort } of running) abort.abort(cancelled(why));
    let cancelTimer: () => void = () => {};
    const patience = new Promise<void>((resolve) => {
      cancelTimer = this.#clock.after(graceMs, resolve);
    });
    await Promise.race([Promise.all(running.map(({ finished }) => finished)), patience]);
    cancelTimer();
  }
}

/** Counts what a listener is told. An operation that is begun again draws the same tokens, which count once. */
function countTokens({ onToken, prefillTokens }: TokenListener): {
  readonly onToken: OnToken;
  readonly told: () => TokenUsage | undefined;
} {
  const lengths = new Map<number, number>();
  return {
    onToken: (token) => {
      lengths.set(token.sample, Math.max(lengths.get(token.sample) ?? 0, token.position + 1));
      onToken(token);
    },
    told: () => {
      if (lengths.size === 0) return undefined;
      const sampleTokens = [...lengths.values()].reduce((sum, length) => sum + length, 0);
      return { prefillTokens, sampleTokens, trainingTokens: 0 };
    },
  };
}
