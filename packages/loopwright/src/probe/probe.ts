/** The runtime tried in a process of its own: a native library or driver that crashes must not take a command along. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Device, SamplerPrecision } from '@loopwright/engine';
import { LoopwrightError, type WireError } from '@loopwright/protocol';

export interface SpeedResult {
  readonly loadMs: number;
  readonly gflops: number;
  readonly threads: number;
}

export type ProbeRequest =
  | { readonly type: 'speed' }
  | { readonly type: 'device'; readonly device: Device }
  | { readonly type: 'precision'; readonly samplerPrecision: SamplerPrecision; readonly device: Device };
export type ProbeMessage = { readonly result: SpeedResult | null } | { readonly error: WireError };

const ownEntry = new URL('./main.js', import.meta.url);

/** @throws what `probeRuntime` throws; `engine_failed` when the process ends without an answer */
export async function probeSpeed(entry = ownEntry): Promise<SpeedResult> {
  const result = await ask({ type: 'speed' }, entry);
  return result as SpeedResult; // true: the answer to this request
}

/** Whether the engine can compute on a device here. @throws `device_unavailable`; `engine_failed` when its driver crashes */
export async function probeDevice(device: Device, entry = ownEntry): Promise<void> {
  if (device !== 'cpu') await ask({ type: 'device', device }, entry);
}

/** Whether the engine can sample in a precision here. @throws `unsupported_host`, `invalid_argument` */
export async function probePrecision(
  samplerPrecision: SamplerPrecision,
  device: Device,
  entry = ownEntry,
): Promise<void> {
  if (samplerPrecision !== 'float32') await ask({ type: 'precision', samplerPrecision, device }, entry);
}

async function ask(request: ProbeRequest, entry: URL): Promise<SpeedResult | null> {
  const args = [JSON.stringify(request)];
  const child = fork(fileURLToPath(entry), args, { stdio: ['ignore', 'ignore', 'ignore', 'ipc'], execArgv: [] });
  return new Promise((resolve, reject) => {
    child.once('message', (message: ProbeMessage) => {
      if ('result' in message) resolve(message.result);
      else reject(LoopwrightError.fromJSON(message.error));
    });
    child.once('error', reject);
    child.once('exit', (code, killedBy) => {
      const how = killedBy === null ? `exit code ${code}` : `signal ${killedBy}`;
      reject(new LoopwrightError({ code: 'engine_failed', message: `the runtime's process ended (${how})` }));
    });
  });
}
