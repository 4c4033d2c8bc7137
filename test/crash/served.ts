/** A server in a process of its own that is started again, on its port and its data, whenever it dies. */
import { readFile } from 'node:fs/promises';
import type { RunningCommand } from '../support/command.js';

export type Role = 'server' | 'engine';

/** A server that does not come up by itself this often is broken, not killed. */
const maxStarts = 40;

export class Served {
  readonly #start: (port: number) => RunningCommand;
  #command: RunningCommand | undefined;
  #stopping = false;
  #port = 0;
  /** Logs of all of its processes. */
  log = '';
  /** How often it was started. */
  starts = 0;
  /** Rejects when the server ended in another way than by a kill. */
  readonly broken: Promise<never>;
  readonly #supervised: Promise<void>;

  constructor(start: (port: number) => RunningCommand) {
    this.#start = start;
    const { promise, reject } = withReject();
    this.broken = promise;
    this.#supervised = this.#supervise().catch(reject);
  }

  async #supervise(): Promise<void> {
    while (!this.#stopping) {
      if (this.starts === maxStarts) throw new Error(`the server was started ${maxStarts} times`);
      this.starts += 1;
      const command = this.#start(this.#port);
      this.#command = command;
      command.output(/"type":"listening"/).then(
        (text) => {
          this.#port = Number(new URL(String(/"url":"([^"]+)"/.exec(text)?.[1])).port);
        },
        () => undefined, // killed before
      );
      const { code, stderr } = await command.end;
      this.log += stderr;
      if (!this.#stopping && code !== null) throw new Error(`the server ended by itself with ${code}:\n${stderr}`);
    }
  }

  /** Where it listens, once it does. */
  async url(): Promise<string> {
    while (this.#port === 0) {
      await Promise.race([this.#command?.output(/"type":"listening"/).catch(() => undefined), this.broken]);
      await new Promise((resolve) => setTimeout(resolve, 10)); // the process that was killed makes room for the next one
    }
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Kills one of the two processes as it is now. @returns whether there was one */
  async kill(role: Role): Promise<boolean> {
    const pid = this.#command?.child.pid;
    if (pid === undefined) return false;
    const victim = role === 'server' ? pid : await engineOf(pid);
    if (victim === undefined) return false;
    try {
      return process.kill(victim, 'SIGKILL');
    } catch {
      return false; // it died by itself
    }
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#command?.interrupt();
    await this.#supervised;
  }
}

async function engineOf(server: number): Promise<number | undefined> {
  const children = await readFile(`/proc/${server}/task/${server}/children`, 'utf8').catch(() => '');
  const engine = Number(children.trim().split(' ')[0]);
  return engine > 0 ? engine : undefined;
}

function withReject(): { readonly promise: Promise<never>; readonly reject: (error: unknown) => void } {
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<never>((_, fail) => {
    reject = fail;
  });
  promise.catch(() => undefined); // raced where it matters
  return { promise, reject };
}
