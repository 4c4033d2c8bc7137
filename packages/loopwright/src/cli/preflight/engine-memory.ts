/** What the engine beside this process has held, by Linux's own count. */
import { readdir, readFile } from 'node:fs/promises';

/** The program of an engine's process, as `spawnEngine` starts it. */
const engineProgram = /[/\\]local[/\\]process[/\\]main\.[jt]s$/;

/** Bytes: the largest resident size that an engine below this process has had; undefined on other systems, and without one. */
export async function heldByEngine(): Promise<number | undefined> {
  const entries = await readdir('/proc').catch(() => []);
  const held = await Promise.all(entries.filter((entry) => /^\d+$/.test(entry)).map(peakOf));
  const peak = Math.max(0, ...held);
  return peak === 0 ? undefined : peak;
}

/** 0 of what is no engine of ours, or has just ended. */
async function peakOf(pid: string): Promise<number> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    if (!status.includes(`\nPPid:\t${process.pid}\n`)) return 0;
    const [, program = ''] = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
    return engineProgram.test(program) ? 1024 * Number(/\nVmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0) : 0;
  } catch {
    return 0;
  }
}
