/**
 * A limit of time for the work of a tokenizer, on Node: the regular expressions of its file run as they stand, and one that was made for
 * that purpose backtracks for years. V8 stops them where a script has a deadline (0.13 ms a call, measured).
 */
import { Script } from 'node:vm';
import { complaint } from '@loopwright/protocol';

/** Runs work that does not wait, in one go. */
export type Bounded = <T>(work: () => T) => T;

/** Under which a script finds its work: `node:vm` takes no function. */
const slot = '__loopwrightWithinTime';
const script = new Script(`globalThis[${JSON.stringify(slot)}]()`);

/** @returns what runs work and ends it with `model_invalid` after `limitMs`; its state is then as the work left it */
export function withinTime(limitMs: number): Bounded {
  return <T>(work: () => T): T => {
    const outer: unknown = Reflect.get(globalThis, slot);
    let result: { readonly value: T } | undefined;
    Reflect.set(globalThis, slot, () => {
      result = { value: work() };
    });
    try {
      script.runInThisContext({ timeout: limitMs });
    } catch (error) {
      if (!isTimeout(error)) throw error;
      throw complaint({
        code: 'model_invalid',
        field: 'tokenizer.json',
        expected: `expressions that read a text within ${limitMs / 1000} s`,
        got: 'one that takes longer',
        remedy: 'take the model from a place that you trust, or send shorter texts',
        cause: error,
      });
    } finally {
      Reflect.set(globalThis, slot, outer);
    }
    return (result as { readonly value: T }).value; // true: the script ended, so the work did
  };
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
}
