/**
 * Works around a signal that gets lost. In glibc before 2.41 `pthread_cond_signal` may wake nobody (bug 25847); a file operation that
 * Node then hands to its thread pool waits for the next one, which, where everything else waits for it, never comes. Seen
 * among a thousand kills: a server that hung in its first `mkdir`.
 */
import { access } from 'node:fs';

const everyMs = 1_000;

let isOn = false;

/** From now on a file operation of this process is never forgotten for longer than a second. Keeps no process alive; twice is harmless. */
export function nudgeThreadPool(): void {
  if (isOn) return;
  isOn = true;
  setInterval(() => access(process.execPath, () => undefined), everyMs).unref();
}
