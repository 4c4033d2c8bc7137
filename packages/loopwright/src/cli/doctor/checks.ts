/** The checks of `loopwright doctor`, each a function of the machine that says what it found. */
import { randomUUID } from 'node:crypto';
import { access, mkdir, rm, statfs, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import {
  type Device,
  defaultMaxMemoryBytes,
  describeHost,
  deviceFacts,
  devicesOn,
  type HostFacts,
  hostFacts,
  machineMemoryBytes,
  requireSupportedHost,
} from '@loopwright/engine';
import { asLoopwrightError } from '@loopwright/protocol';
import type { Settings } from '../../config.js';
import { bundledModel } from '../../models.js';
import { probeDevice, probeSpeed } from '../../probe/probe.js';
import { bytesText } from '../text.js';

export interface Check {
  readonly name: string;
  /** `slow`: works, but not well. */
  readonly status: 'ok' | 'slow' | 'missing';
  readonly found: string;
  /** How to mend it; always there when something is slow or missing. */
  readonly remedy?: string;
}

export interface CheckOptions {
  readonly settings: Settings;
  readonly dataDir: string;
  readonly port: number;
}

/** The oldest release that the command line's libraries run on. */
const minNode = [20, 12] as const;
const gigabyte = 1e9;

export function checkNode(version = process.versions.node): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isEnough = major > minNode[0] || (major === minNode[0] && minor >= minNode[1]);
  const remedy = `install Node.js ${minNode.join('.')} or newer from https://nodejs.org`;
  return { name: 'Node.js', found: version, ...(isEnough ? { status: 'ok' } : { status: 'missing', remedy }) };
}

export function checkHost(facts: HostFacts = hostFacts()): Check {
  const found = describeHost(facts);
  try {
    requireSupportedHost(facts);
    return { name: 'host', status: 'ok', found };
  } catch (error) {
    const { remedy = '' } = asLoopwrightError(error).details;
    return { name: 'host', status: 'missing', found, remedy: `the embedded engine does not run here: ${remedy}` };
  }
}

export function checkCores(cores = availableParallelism()): Check {
  const remedy = 'training uses up to 8 cores; with one, the server and the engine share it';
  return { name: 'cores', found: String(cores), ...(cores >= 2 ? { status: 'ok' } : { status: 'slow', remedy }) };
}

export function checkMemory(bytes = machineMemoryBytes()): Check {
  const found = `${bytesText(bytes)}, of which an engine uses ${bytesText(defaultMaxMemoryBytes(bytes))} at most`;
  if (bytes < 1.5 * gigabyte)
    return { name: 'memory', status: 'missing', found, remedy: 'give the machine or container 2 GB or more' };
  if (bytes < 6 * gigabyte) {
    return {
      name: 'memory',
      status: 'slow',
      found,
      remedy: 'enough for loopwright-tiny; a 135M model wants 6 GB, a 0.5B model 12 GB',
    };
  }
  return { name: 'memory', status: 'ok', found };
}

export async function checkDataDirectory(dataDir: string): Promise<Check> {
  const file = join(dataDir, `.write-check-${randomUUID()}`);
  try {
    await mkdir(dataDir, { recursive: true });
    await writeFile(file, '');
    await rm(file);
    return { name: 'data directory', status: 'ok', found: dataDir };
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException; // only printed
    const remedy = 'make it writable, or set LOOPWRIGHT_HOME to a folder that is';
    return { name: 'data directory', status: 'missing', found: `${dataDir} cannot be written (${code})`, remedy };
  }
}

export async function checkDisk(dataDir: string): Promise<Check> {
  try {
    const { bavail, bsize } = await statfs(dataDir);
    const free = bavail * bsize;
    const remedy = 'free some space: checkpoints and float32 copies of weights lie there';
    const status = free > 5 * gigabyte ? 'ok' : free > 0.5 * gigabyte ? 'slow' : 'missing';
    return { name: 'disk', status, found: `${bytesText(free)} free`, ...(status === 'ok' ? {} : { remedy }) };
  } catch {
    return { name: 'disk', status: 'slow', found: 'free space unknown', remedy: 'see the data directory above' };
  }
}

/** Below this, the demo takes several times its two minutes. */
const slowGflops = 20;

export async function checkRuntime(probe = probeSpeed): Promise<Check> {
  try {
    const { gflops, loadMs, threads } = await probe();
    const found = `onnxruntime loads in ${(loadMs / 1000).toFixed(1)} s and multiplies at ${gflops.toFixed(0)} GFLOP/s on ${threads} threads`;
    if (gflops >= slowGflops) return { name: 'runtime', status: 'ok', found };
    return {
      name: 'runtime',
      status: 'slow',
      found,
      remedy: 'close what else uses the processor, or run on a faster machine',
    };
  } catch (error) {
    const remedy = 'reinstall with ONNXRUNTIME_NODE_INSTALL=skip npm install, or use a server by LOOPWRIGHT_URL';
    return { name: 'runtime', status: 'missing', found: asLoopwrightError(error).message, remedy };
  }
}

/** Never missing: the processor is always there. Each device that the runtime has for this host is tried. */
export async function checkDevices(
  names = devicesOn(),
  probe: (device: Device) => Promise<void> = probeDevice,
): Promise<Check> {
  const found = await Promise.all(
    names.map((device) =>
      probe(device).then(
        () => ({ device, isThere: true }),
        () => ({ device, isThere: false }),
      ),
    ),
  );
  const there = found.filter(({ isThere }) => isThere).map(({ device }) => device);
  const absent = found.flatMap(({ device, isThere }) =>
    isThere ? [] : [`${device} does not work, it needs ${deviceFacts[device].needs}`],
  );
  return { name: 'devices', status: 'ok', found: [there.join(', '), ...absent].join('; ') };
}

export async function checkBundledModel(directory = bundledModel.directory): Promise<Check> {
  const files = ['config.json', 'tokenizer.json', 'model.safetensors'];
  const there = await Promise.all(
    files.map((file) =>
      access(join(directory, file)).then(
        () => true,
        () => false,
      ),
    ),
  );
  const lacking = files.filter((_, i) => there[i] !== true);
  if (lacking.length === 0) return { name: 'bundled model', status: 'ok', found: directory };
  return {
    name: 'bundled model',
    status: 'missing',
    found: `${directory} lacks ${lacking.join(', ')}`,
    remedy: 'reinstall the package @loopwright/tiny',
  };
}

export async function checkPort(port: number): Promise<Check> {
  const server = createServer();
  try {
    await new Promise<void>((done, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', done);
    });
    return { name: 'port', status: 'ok', found: `${port} is free` };
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException; // only printed
    const remedy = 'loopwright serve --port takes another; embedded servers find a free one by themselves';
    return { name: 'port', status: 'slow', found: `${port} cannot be used (${code})`, remedy };
  } finally {
    server.close();
  }
}

export async function checkServer({ url, apiKey }: Pick<Settings, 'url' | 'apiKey'>): Promise<Check> {
  if (url === undefined)
    return { name: 'LOOPWRIGHT_URL', status: 'ok', found: 'not set: loops start their own server' };
  const name = 'LOOPWRIGHT_URL';
  try {
    const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    const answer = await fetch(new URL('health', url.endsWith('/') ? url : `${url}/`), {
      headers,
      signal: AbortSignal.timeout(5_000),
    });
    if (answer.ok) return { name, status: 'ok', found: `${url} answers` };
    return {
      name,
      status: 'missing',
      found: `${url} answers ${answer.status}`,
      remedy: 'check the address, and LOOPWRIGHT_API_KEY',
    };
  } catch {
    return {
      name,
      status: 'missing',
      found: `${url} cannot be reached`,
      remedy: 'start that server, or unset LOOPWRIGHT_URL to use an embedded one',
    };
  }
}

/** Every check, in the order in which they are shown; those that take time run beside each other. */
export async function checkEverything({ settings, dataDir, port }: CheckOptions): Promise<Check[]> {
  const directory = await checkDataDirectory(dataDir);
  return Promise.all([
    checkNode(),
    checkHost(),
    checkCores(),
    checkMemory(),
    directory,
    checkDisk(dataDir),
    checkRuntime(),
    checkDevices(),
    checkBundledModel(),
    checkPort(port),
    checkServer(settings),
  ]);
}
