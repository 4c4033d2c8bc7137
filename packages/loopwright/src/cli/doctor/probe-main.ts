/** Entry of the probe's process: loads the runtime, measures it, tells the parent, ends. */
import { probeRuntime } from '@loopwright/engine/local';
import { asLoopwrightError } from '@loopwright/protocol';
import type { ProbeMessage } from './probe.js';

const message: ProbeMessage = await probeRuntime().then(
  (result) => ({ result }),
  (error: unknown) => ({ error: asLoopwrightError(error).toJSON() }),
);
process.send?.(message, () => process.disconnect());
