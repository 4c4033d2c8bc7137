/** Entry of the engine's process: loads one model and answers calls until its parent goes away. */
import { asLoopwrightError, LoopwrightError } from '@loopwright/protocol';
import type { OnToken } from '../../engine.js';
import { nudgeThreadPool } from '../../nudge-thread-pool.js';
import { LocalEngine } from '../local-engine.js';
import { type FromEngine, isFileMethod, type ToEngine } from './messages.js';
import type { EngineProcessConfig } from './spawn.js';

const send = (message: FromEngine, sent: () => void = () => undefined) => {
  // A parent that has gone is noticed by 'disconnect'; a last answer to it may be lost.
  if (process.connected) process.send?.(message, undefined, undefined, sent);
};

process.on('disconnect', () => process.exit(0));
// Ctrl-C reaches the whole group; the parent decides what is finished first.
process.on('SIGINT', () => undefined);

nudgeThreadPool();
const config = JSON.parse(process.argv[2] ?? '{}') as EngineProcessConfig; // true: spawn.ts writes it
const loading = LocalEngine.load(config.card, {
  ...config.options,
  onSwap: (event) => send({ type: 'swap', event }),
  ...(config.reportSlices ? { onSlice: (event) => send({ type: 'slice', event }) } : {}),
});
loading.then(
  ({ model, incarnation, precisionEffect }) => send({ type: 'ready', model, incarnation, precisionEffect }),
  (error: unknown) => {
    send({ type: 'failed', error: asLoopwrightError(error).toJSON() }, () => process.disconnect());
  },
);

const running = new Map<number, AbortController>();

async function call({
  id,
  method,
  args,
  progress,
  tokens,
  repeat,
}: Extract<ToEngine, { type: 'call' }>): Promise<void> {
  const controller = new AbortController();
  running.set(id, controller);
  try {
    const engine = await loading;
    const options = {
      signal: controller.signal,
      ...(repeat ? { isRepeat: true } : {}),
      ...(progress ? { onProgress: (done: number) => send({ type: 'progress', id, done }) } : {}),
      ...(tokens ? { onToken: (token: Parameters<OnToken>[0]) => send({ type: 'token', id, token }) } : {}),
    };
    const merged = isFileMethod(method) ? [args[0], { ...(args[1] as object), ...options }] : [...args, options];
    const value = await (engine[method] as (...all: unknown[]) => Promise<unknown>).apply(engine, merged); // true: names and arguments come from spawn.ts
    send({ type: 'result', id, value });
  } catch (error) {
    send({ type: 'error', id, error: asLoopwrightError(error, 'engine_failed').toJSON() });
  } finally {
    running.delete(id);
  }
}

process.on('message', (message: ToEngine) => {
  switch (message.type) {
    case 'call':
      void call(message);
      return;
    case 'cancel':
      running
        .get(message.id)
        ?.abort(new LoopwrightError({ code: 'cancelled', message: 'operation: cancelled by the caller' }));
      return;
    case 'stop':
      process.exit(0);
      return;
    default:
      message satisfies never;
  }
});
