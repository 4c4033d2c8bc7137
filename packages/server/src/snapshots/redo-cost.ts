/** How much engine time it would take to make a session again by running its operations: those behind the last state that is kept. */
import type { TrainingRecord } from '../operations/operation-record.js';

/** What a training operation came to. `clears`: it failed, and dropped the gradient. */
export type RedoKind = 'completed' | 'failed' | 'clears';

export class RedoCost {
  #totalMs = 0;
  /** Of passes whose gradient no step has used: a saved state does not hold it. */
  #pendingMs = 0;

  get totalMs(): number {
    return this.#totalMs;
  }

  add(operation: TrainingRecord['type'], kind: RedoKind, engineMs: number): void {
    if (kind === 'clears') this.#pendingMs = 0;
    if (kind !== 'completed') return;
    switch (operation) {
      case 'forward-backward':
        this.#pendingMs += engineMs;
        this.#totalMs += engineMs;
        return;
      case 'optim-step':
        this.#pendingMs = 0;
        this.#totalMs += engineMs;
        return;
      case 'load-state':
        this.#pendingMs = 0;
        this.#totalMs = engineMs;
        return;
      case 'save-state':
        this.#totalMs = this.#pendingMs;
        return;
      case 'forward':
      case 'save-weights':
        return;
      default:
        operation satisfies never;
    }
  }
}

/** Engine time of an operation in the log. */
export function engineMsOf({ engineMs, startedAtMs, endedAtMs }: TrainingRecord): number {
  return engineMs ?? Math.max(0, (endedAtMs ?? 0) - (startedAtMs ?? endedAtMs ?? 0));
}
