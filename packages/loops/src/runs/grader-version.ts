/** Which version of a grader judged: a hash of the module of the task, and of the modules beside it that it is made of. */
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { complaint } from '@loopwright/protocol';

export interface GraderVersion {
  /** SHA-256 over the path (against the task's folder) and content of each module, in order of path. Hexadecimal. */
  readonly sha256: string;
  /** Modules that went into it. */
  readonly modules: number;
}

/** Static and dynamic imports, exports from, and `require`, of relative paths that are written as such. */
const relativeImport = /\b(?:from|import|require)\s*\(?\s*(['"`])(\.{1,2}(?:\/[^'"`?#]*)?)(?:[?#][^'"`]*)?\1/g;

/** What a path without an end may lead to. */
const ends = ['.ts', '.tsx', '.mts', '.cts', '.js', '.jsx', '.mjs', '.cjs', '.json'] as const;

/** TypeScript is imported by the name of what it becomes. */
const sources: Readonly<Record<string, readonly string[]>> = {
  '.js': ['.ts', '.tsx'],
  '.jsx': ['.tsx'],
  '.mjs': ['.mts'],
  '.cjs': ['.cts'],
};

/**
 * The version of a grader. Packages that it uses don't count (a run keeps their versions), nor files that it reads, nor imports whose path is computed.
 *
 * @param file module that exports the task
 * @throws `not_found` for a module that isn't there
 */
export async function graderVersion(file: string): Promise<GraderVersion> {
  const start = resolve(file);
  const folder = dirname(start);
  const found = new Map<string, string>();
  const waiting = [start];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (found.has(path)) continue;
    const text = await readModule(path);
    found.set(path, createHash('sha256').update(text).digest('hex'));
    for (const [, , name = ''] of text.matchAll(relativeImport))
      waiting.push(...(await modulesAt(resolve(dirname(path), name))));
  }
  const hash = createHash('sha256');
  const named = [...found].map(([path, own]) => [relative(folder, path).replaceAll('\\', '/'), own] as const);
  for (const [name, own] of named.sort(([a], [b]) => (a < b ? -1 : 1)))
    hash.update(`${name === relative(folder, start) ? '.' : name} ${own}\n`);
  return { sha256: hash.digest('hex'), modules: found.size };
}

async function readModule(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw complaint({
      code: 'not_found',
      field: 'task',
      expected: 'a module that can be read',
      got: `none at ${path}`,
      cause,
    });
  }
}

/**
 * All that the import of a path may lead to: where it is several, which one is taken depends on what loads them. None of an import that is only written in a
 * comment or of types alone: it isn't loaded, or the task would not have been.
 */
async function modulesAt(path: string): Promise<string[]> {
  const end = extname(path);
  const stem = path.slice(0, path.length - end.length);
  const named = await filesOf([path, ...(sources[end] ?? []).map((source) => `${stem}${source}`)]);
  if (named.length > 0) return named;
  return filesOf(ends.flatMap((each) => [`${path}${each}`, join(path, `index${each}`)]));
}

async function filesOf(paths: readonly string[]): Promise<string[]> {
  const files = await Promise.all(
    paths.map(async (path) => (await stat(path).catch(() => undefined))?.isFile() === true),
  );
  return paths.filter((_, i) => files[i]);
}
