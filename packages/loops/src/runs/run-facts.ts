/** What a run stands on: versions, commit, command. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { withoutSecrets } from './plain-config.js';
import type { RunRecord } from './run-record.js';

/** Node, platform and packages, those of `names` besides the own; what isn't installed is left out. @param from a module's URL, from which the names are resolved */
export async function collectVersions(
  names: readonly string[] = [],
  from: string = import.meta.url,
): Promise<RunRecord['versions']> {
  const own = ['@loopwright/loops', '@loopwright/client'];
  const found = await Promise.all(
    [...new Set([...names, ...own])].map(
      async (name) => [name, await versionOf(name, names.includes(name) ? from : import.meta.url)] as const,
    ),
  );
  return {
    node: process.version,
    platform: `${process.platform}-${process.arch}`,
    packages: Object.fromEntries(found.flatMap(([name, version]) => (version === undefined ? [] : [[name, version]]))),
  };
}

/** Of an installed package: the nearest package.json of that name above its entry. */
async function versionOf(name: string, from: string): Promise<string | undefined> {
  for (const start of [from, entryOf(name)]) {
    if (start === undefined) continue;
    for (let folder = dirname(fileURLToPath(start)); ; folder = dirname(folder)) {
      const inside = await manifestOf(join(folder, 'package.json'));
      if (inside?.name === name) return inside.version;
      const installed = await manifestOf(join(folder, 'node_modules', name, 'package.json'));
      if (installed !== undefined) return installed.version;
      if (folder === dirname(folder)) break;
    }
  }
  return undefined;
}

function entryOf(name: string): string | undefined {
  try {
    const url = import.meta.resolve(name);
    return url.startsWith('file:') ? url : undefined;
  } catch {
    return undefined;
  }
}

async function manifestOf(path: string): Promise<{ readonly name?: string; readonly version?: string } | undefined> {
  try {
    const { name, version } = JSON.parse(await readFile(path, 'utf8')) as { name?: unknown; version?: unknown }; // each field is looked at
    return { ...(typeof name === 'string' ? { name } : {}), ...(typeof version === 'string' ? { version } : {}) };
  } catch {
    return undefined;
  }
}

const run = promisify(execFile);

/** The commit of a folder, and whether files differ from it; null outside a git repository, or without git. */
export async function sourceOf(folder: string): Promise<RunRecord['source']> {
  const git = async (...args: string[]): Promise<string> => {
    const { stdout } = await run('git', args, { cwd: folder, timeout: 10_000, maxBuffer: 64 * 1024 * 1024 });
    return stdout.trim();
  };
  try {
    const commit = await git('rev-parse', 'HEAD');
    return { commit, dirty: (await git('status', '--porcelain')) !== '' };
  } catch {
    return null;
  }
}

/** The command of this process, as it would be typed again. */
export function ownCommand(): RunRecord['command'] {
  return {
    cwd: process.cwd(),
    argv: [process.execPath, ...process.execArgv, ...withoutSecrets(process.argv.slice(1))],
  };
}
