/** The runtime tried in a process of its own: a native library that crashes must not take the doctor along. */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { LoopwrightError, type WireError } from '@loopwright/protocol';

export interface ProbeResult {
  readonly loadMs: number;
  readonly gflops: number;
  readonly threads: number;
}

export type ProbeMessage = { readonly result: ProbeResult } | { readonly error: WireError };

/** @throws what `probeRuntime` throws; `engine_failed` when the process ends without an answer */
export async function probeInChild(entry = new URL('./probe-main.js', import.meta.url)): Promise<ProbeResult> {
  const child = fork(fileURLToPath(entry), [], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'], execArgv: [] });
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
