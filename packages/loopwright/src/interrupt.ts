/** Ctrl-C: the first asks for a clean end, the second ends at once. */
import { LoopwrightError } from '@loopwright/protocol';
import { exitCodes } from './cli/exit-codes.js';
import { endProcess } from './ending.js';

export interface Interrupt extends Disposable {
  /** Aborted by the first Ctrl-C or SIGTERM. */
  readonly signal: AbortSignal;
}

export interface InterruptOptions {
  /** Told once, at the first. */
  readonly onInterrupt: () => void;
  /** What the error of the work then says besides, such as how to go on. */
  readonly remedy?: string;
  /** Default the process's own. */
  readonly exit?: (code: number) => void;
}

const signals = ['SIGINT', 'SIGTERM'] as const;

/** Listens until it is disposed. */
export function listenForInterrupt({ onInterrupt, remedy, exit = endProcess }: InterruptOptions): Interrupt {
  const controller = new AbortController();
  const interrupt = (): void => {
    if (controller.signal.aborted) {
      exit(exitCodes.interrupted);
      return;
    }
    onInterrupt();
    const message = remedy === undefined ? 'interrupted' : `interrupted; ${remedy}`;
    controller.abort(new LoopwrightError({ code: 'cancelled', message }));
  };
  for (const name of signals) process.on(name, interrupt);
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      for (const name of signals) process.off(name, interrupt);
    },
  };
}
