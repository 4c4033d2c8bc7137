/** One writer of a run folder: a file that says which process it is. */
import { randomUUID } from 'node:crypto';
import { open, readFile, rename, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { complaint } from '@loopwright/protocol';
import { asWriteError, systemCode } from './write-error.js';

const lockName = 'run.lock';

interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When the process began, in the kernel's ticks and with the boot; so that a number that is used again isn't taken for it. Absent where it can't be had. */
  readonly began?: string;
  readonly token: string;
}

/**
 * Takes the folder for this process; disposing gives it back. A lock whose process is gone is taken over.
 *
 * @param options `what` the folder is called in messages
 * @throws `run_in_use` when another process of this machine holds it, or one of another machine, of which nothing can be known
 */
export async function lockRun(
  folder: string,
  { what = 'run folder' }: { readonly what?: string } = {},
): Promise<AsyncDisposable> {
  const path = join(folder, lockName);
  const began = await beganOf(process.pid);
  const own: Holder = {
    pid: process.pid,
    host: hostname(),
    token: randomUUID(),
    ...(began === undefined ? {} : { began }),
  };
  for (;;) {
    try {
      await writeNew(path, JSON.stringify(own));
      return { [Symbol.asyncDispose]: () => release(path, own) };
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw asWriteError(error, path);
    }
    const holder = await holderOf(path);
    if (holder === 'nobody') continue;
    if (holder === 'unreadable' || (await isAlive(holder))) throw inUse(folder, { holder, what });
    await takeAway(path, holder);
  }
}

/** @throws what the system says; then there is no file of ours: one that a full disk left empty would be nobody's and refuse all */
async function writeNew(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(text);
  } catch (error) {
    await unlink(path).catch(() => undefined);
    throw error;
  } finally {
    await file.close();
  }
}

/** Whether a living process writes to the folder, as far as can be known: one of another machine counts as living. */
export async function isLocked(folder: string): Promise<boolean> {
  const holder = await holderOf(join(folder, lockName));
  return holder !== 'nobody' && (holder === 'unreadable' || (await isAlive(holder)));
}

async function release(path: string, own: Holder): Promise<void> {
  const holder = await holderOf(path);
  if (typeof holder === 'object' && holder.token === own.token) await unlink(path).catch(() => undefined);
}

/** Removes the lock of a process that is gone, unless somebody else has just done so and locked anew. */
async function takeAway(path: string, gone: Holder): Promise<void> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return;
    throw asWriteError(error, path);
  }
  const moved = await holderOf(aside);
  const isOther = typeof moved === 'object' && moved.token !== gone.token;
  if (isOther) await writeFile(path, JSON.stringify(moved), { flag: 'wx' }).catch(() => undefined);
  await unlink(aside).catch(() => undefined);
}

async function holderOf(path: string): Promise<Holder | 'nobody' | 'unreadable'> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    return systemCode(error) === 'ENOENT' ? 'nobody' : 'unreadable';
  }
  try {
    const { pid, host, token, began } = JSON.parse(text) as Partial<Holder>; // each field is looked at
    if (typeof pid !== 'number' || typeof host !== 'string' || typeof token !== 'string') return 'unreadable';
    return { pid, host, token, ...(typeof began === 'string' ? { began } : {}) };
  } catch {
    return 'unreadable'; // perhaps being written just now
  }
}

async function isAlive({ pid, host, began }: Holder): Promise<boolean> {
  if (host !== hostname()) return true;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (systemCode(error) === 'ESRCH') return false;
  }
  const now = await beganOf(pid);
  return began === undefined || now === undefined || began === now;
}

/** On Linux; elsewhere a process is known by its number alone. */
async function beganOf(pid: number): Promise<string | undefined> {
  try {
    const [stat, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
    ]);
    // The name of the program, in brackets, may hold anything; the 22nd field is the 20th after it.
    const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
    return ticks === undefined ? undefined : `${ticks}@${boot.trim()}`;
  } catch {
    return undefined;
  }
}

function inUse(
  folder: string,
  { holder, what }: { readonly holder: Holder | 'unreadable'; readonly what: string },
): Error {
  const got = holder === 'unreadable' ? 'one that can’t be read' : `one of process ${holder.pid} on ${holder.host}`;
  return complaint({
    code: 'run_in_use',
    field: folder,
    expected: `a ${what} without a lock`,
    got,
    remedy: `wait for that program, or name another folder; if it is no longer running, delete ${join(folder, lockName)}`,
  });
}
