/** An operation run on an engine, and again on its successor when the engine's end took it down. */
import type { Engine } from '@loopwright/engine';
import { asLoopwrightError, type LoopwrightError } from '@loopwright/protocol';
import { maxAttempts } from '../engines/engine-host.js';
import type { EngineResidence } from './engine-residence.js';
import type { Running } from './running-operations.js';
import type { Outcome } from './write-ending.js';

export interface Attempt {
  readonly running: Running;
  readonly residence: EngineResidence;
  /** True once the session was let go, so that nothing is to be written of it. */
  readonly isSuspended: () => boolean;
  /** The engine to run on; its failure is the caller's. */
  readonly engine: () => Promise<Engine>;
  readonly work: (engine: Engine) => Promise<Outcome>;
}

/** @returns undefined when the session was let go meanwhile; a failure of the work is an outcome */
export async function attempt({ running, residence, isSuspended, ...run }: Attempt): Promise<Outcome | undefined> {
  for (let count = 1; ; count++) {
    const engine = await run.engine();
    const { incarnation } = engine;
    try {
      return await running.timed(() => run.work(engine));
    } catch (error) {
      const isOver = isSuspended() || running.abort.signal.aborted;
      if (isOver || count >= maxAttempts || !(await residence.isGone(engine, incarnation, error))) {
        return failureOf(error, running, isSuspended());
      }
    }
  }
}

/** What a failure means: nothing for a session that was let go, the reason of the one who asked to give up, or the failure itself. */
export function failureOf(error: unknown, running: Running, isSuspended: boolean): LoopwrightError | undefined {
  if (isSuspended) return undefined;
  const { aborted, reason } = running.abort.signal;
  return aborted ? asLoopwrightError(reason, 'cancelled') : asLoopwrightError(error, 'operation_failed');
}
