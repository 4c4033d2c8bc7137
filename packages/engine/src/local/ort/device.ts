/** Whether the runtime computes on a device here. */
import { add, compile, Graph } from '@loopwright/graph';
import { asLoopwrightError, complaint } from '@loopwright/protocol';
import { type Device, deviceFacts, devicesOn } from '../../devices.js';
import { Compiled, floats, loadRuntime, TensorFactory } from './runtime.js';

/**
 * Computes one sum on a device, so that a missing driver is told before a model is loaded. The processor is never in doubt.
 *
 * @throws `device_unavailable` with what it needs and what the runtime said
 */
export async function requireDevice(device: Device): Promise<void> {
  if (device === 'cpu') return;
  const { hosts, needs, remedy } = deviceFacts[device];
  const unavailable = (got: string, cause?: unknown) =>
    complaint({
      code: 'device_unavailable',
      field: 'device',
      expected: `${device}, which needs ${hosts.join(' or ')} with ${needs}`,
      got,
      remedy,
      cause,
    });
  const ort = await loadRuntime();
  if (!devicesOn().includes(device))
    throw unavailable(`${process.platform} ${process.arch}, where the runtime has none`);
  // What the libraries say of it on the standard error is in the refusal.
  ort.env.logLevel = 'fatal';
  const graph = new Graph();
  const x = graph.input('x', 'float32', [2]);
  try {
    await using program = await Compiled.load(compile(graph, { y: add(x, x) }), { threads: 1, device });
    const feeds = { x: new TensorFactory(ort).float(Float32Array.of(1, 2), [2]) };
    const [first, second] = floats(await program.run(feeds, ['y']), 'y');
    if (first !== 2 || second !== 4) throw new Error(`it adds 1 + 1 to ${first}`);
  } catch (cause) {
    throw unavailable(asLoopwrightError(cause).message.replace(/\s+/g, ' ').trim().slice(0, 400), cause);
  }
}
