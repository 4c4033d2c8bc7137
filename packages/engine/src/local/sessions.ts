/** The training sessions of an engine: in memory while they have work, on the disk after a time without; which of both shows in time alone. */
import { asLoopwrightError, LoopwrightError, type SessionSpec, type TrainingSpec } from '@loopwright/protocol';
import type { ExecutionPlan } from '../engine.js';
import type { SwapEvent } from '../swap.js';
import type { BaseModel } from './base-model.js';
import { collectGarbage } from './collect-garbage.js';
import { SwappedSession } from './swapped-session.js';
import { TrainingSession } from './train/training-session.js';

/** Runs `action` once after `delayMs`; the returned function calls it off. */
export type After = (delayMs: number, action: () => void) => () => void;

export interface SessionsOptions {
  /** Folder of sessions on the disk. */
  readonly directory: string;
  /** Time without work after which a session goes to the disk; null for never. */
  readonly swapAfterMs: number | null;
  readonly onSwap?: ((event: SwapEvent) => void) | undefined;
  /** A timer that doesn't keep the process alive, by default. */
  readonly after?: After | undefined;
}

interface Entry {
  readonly name: string;
  place: TrainingSession | SwappedSession;
  /** Calls that work with it. */
  users: number;
  /** Calls off what was to happen after a time without work. */
  callOff: () => void;
  /** While it is written to the disk: any call ends that. */
  leaving: AbortController | undefined;
  /** While it is read back, for all calls that wait for it. */
  coming: Promise<TrainingSession> | undefined;
  isClosed: boolean;
}

export class Sessions implements AsyncDisposable {
  readonly #base: BaseModel;
  readonly #options: SessionsOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #moves = new Set<Promise<void>>();
  #hasComplained = false;
  #callOffCollection = () => {};

  constructor(base: BaseModel, options: SessionsOptions) {
    this.#base = base;
    this.#options = options;
  }

  /** What is trained in each session, wherever it is. */
  get trainings(): TrainingSpec[] {
    return [...this.#entries.values()].map(({ place }) =>
      place instanceof TrainingSession ? place.spec.training : place.training,
    );
  }

  /** @throws `session_exists` */
  requireFree(name: string): void {
    if (!this.#entries.has(name)) return;
    const message = `session: the engine has a session ${name} already; close it first`;
    throw new LoopwrightError({ code: 'session_exists', message });
  }

  create(spec: SessionSpec, plan: ExecutionPlan): void {
    const entry: Entry = {
      name: spec.name,
      place: new TrainingSession(this.#base, spec, { plan }),
      users: 0,
      callOff: () => undefined,
      leaving: undefined,
      coming: undefined,
      isClosed: false,
    };
    this.#entries.set(spec.name, entry);
    this.#rest(entry);
  }

  /**
   * Does work with a session, which is in memory until the work is done. One that is there is handed over at once.
   *
   * @throws `unknown_session`; `engine_failed` where it can't be read back
   */
  async use<T>(name: string, work: (session: TrainingSession) => Promise<T>): Promise<T> {
    const entry = this.#entries.get(name);
    if (entry === undefined)
      throw new LoopwrightError({ code: 'unknown_session', message: `session: the engine has no session ${name}` });
    entry.users++;
    stay(entry);
    try {
      return await work(entry.place instanceof TrainingSession ? entry.place : await this.#bringIn(entry, entry.place));
    } finally {
      entry.users--;
      this.#rest(entry);
    }
  }

  /** Unknown names are fine. Work that is going on with it goes on. */
  async close(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    this.#entries.delete(name);
    entry.isClosed = true;
    stay(entry);
    await entry.coming?.catch(() => undefined);
    if (entry.place instanceof SwappedSession) await entry.place[Symbol.asyncDispose]();
  }

  #rest(entry: Entry): void {
    const { swapAfterMs, after = timer } = this.#options;
    const isAtWork = entry.users > 0 || entry.isClosed || entry.leaving !== undefined;
    if (isAtWork || swapAfterMs === null || entry.place instanceof SwappedSession) return;
    entry.callOff();
    // A timer that went off is held by who may call it off: it must not hold the session.
    entry.callOff = after(swapAfterMs, () => {
      if (entry.place instanceof SwappedSession) return;
      const move: Promise<void> = this.#swapOut(entry, entry.place).finally(() => this.#moves.delete(move));
      this.#moves.add(move);
    });
  }

  async #swapOut(entry: Entry, session: TrainingSession): Promise<void> {
    const { directory, onSwap } = this.#options;
    const startMs = performance.now();
    const leaving = new AbortController();
    entry.leaving = leaving;
    try {
      const swapped = await SwappedSession.write(session, { directory, signal: leaving.signal });
      if (leaving.signal.aborted) {
        await swapped[Symbol.asyncDispose]();
        return;
      }
      entry.place = swapped;
      this.#hasComplained = false;
      this.#collectSoon();
      const { sizeBytes } = swapped;
      onSwap?.({ type: 'swap-out', session: entry.name, sizeBytes, ms: performance.now() - startMs });
    } catch (error) {
      if (leaving.signal.aborted || this.#hasComplained) return;
      this.#hasComplained = true;
      onSwap?.({ type: 'swap-failed', session: entry.name, error: asLoopwrightError(error).toJSON() });
    } finally {
      if (entry.leaving === leaving) {
        entry.leaving = undefined;
        this.#rest(entry);
      }
    }
  }

  /** Once for all sessions that go at about the same time. */
  #collectSoon(): void {
    const { after = timer } = this.#options;
    this.#callOffCollection();
    this.#callOffCollection = after(collectAfterMs, collectGarbage);
  }

  #bringIn(entry: Entry, swapped: SwappedSession): Promise<TrainingSession> {
    const read = async () => {
      const startMs = performance.now();
      try {
        const session = await swapped.read(this.#base);
        entry.place = session;
        await swapped[Symbol.asyncDispose]();
        const { sizeBytes } = swapped;
        this.#options.onSwap?.({ type: 'swap-in', session: entry.name, sizeBytes, ms: performance.now() - startMs });
        return session;
      } catch (cause) {
        const message = `session: it was swapped to the disk and can't be read back: ${asLoopwrightError(cause).message}`;
        throw new LoopwrightError({ code: 'engine_failed', message, cause });
      } finally {
        entry.coming = undefined;
      }
    };
    entry.coming ??= read();
    return entry.coming;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#entries.keys()].map((name) => this.close(name)));
    await Promise.all(this.#moves);
    this.#callOffCollection();
  }
}

/** It is needed, or gone: what would put it on the disk ends. */
function stay(entry: Entry): void {
  entry.callOff();
  entry.leaving?.abort();
  entry.leaving = undefined;
}

const collectAfterMs = 100;

const timer: After = (delayMs, action) => {
  const handle = setTimeout(action, delayMs);
  handle.unref();
  return () => clearTimeout(handle);
};
