/** Entry of the probe's process: loads the runtime, tries what it was asked to, tells the parent, ends. */
import { probeRuntime, type RuntimeProbe, requireDevice, requirePrecision } from '@loopwright/engine/local';
import { asLoopwrightError } from '@loopwright/protocol';
import type { ProbeMessage, ProbeRequest } from './probe.js';

const request = JSON.parse(process.argv[2] ?? '') as ProbeRequest; // true: probe.ts writes it
const tried = (): Promise<RuntimeProbe | null> => {
  switch (request.type) {
    case 'speed':
      return probeRuntime();
    case 'device':
      return requireDevice(request.device).then(() => null);
    case 'precision':
      return requirePrecision(request.samplerPrecision, request.device).then(() => null);
  }
};
const message: ProbeMessage = await tried().then(
  (result) => ({ result }),
  (error: unknown) => ({ error: asLoopwrightError(error).toJSON() }),
);
process.send?.(message, () => process.disconnect());
