/** A server in a process of its own, with the bundled model, and what can be learned of it from outside. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RunningCommand, startCommand } from '../support/command.js';
import { RawServer } from '../support/raw-server.js';

export interface MeasuredServer extends AsyncDisposable {
  readonly raw: RawServer;
  readonly url: string;
  readonly dataDir: string;
  /** Resident bytes of the server and of its engines. */
  memory(): Promise<{ readonly server: number; readonly engines: number }>;
  /** Whether the process is still there. */
  isUp(): boolean;
  /** Lines of the log at warning or above. */
  log(): string;
}

export async function measuredServer(args: readonly string[] = []): Promise<MeasuredServer> {
  const home = await mkdtemp(join(tmpdir(), 'loopwright-load-'));
  const command = startCommand(['serve', '--port', '0', '--json', '--log-level', 'warn', ...args], { home });
  const { url } = JSON.parse(await command.output(/\n/)) as { url: string }; // true: the first line of --json
  let isUp = true;
  let log = '';
  command.child.stderr?.on('data', (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-10_000);
  });
  void command.end.then(() => {
    isUp = false;
  });
  return {
    raw: new RawServer(url),
    url,
    dataDir: join(home, 'data'),
    memory: () => memoryOf(command),
    isUp: () => isUp,
    log: () => log,
    [Symbol.asyncDispose]: async () => {
      command.child.kill('SIGTERM');
      await command.end;
      await rm(home, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

async function memoryOf({ child }: RunningCommand): Promise<{ readonly server: number; readonly engines: number }> {
  const pid = child.pid!;
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')).trim();
  const engines = await Promise.all(children.split(' ').map(residentBytes));
  return { server: await residentBytes(String(pid)), engines: engines.reduce((sum, bytes) => sum + bytes, 0) };
}

/** 0 where the process is gone, or the system has no /proc. */
async function residentBytes(pid: string): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
}
