/** Which version of a grader judged: a hash of the module of the task, and of the modules beside it that it is made of. */
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { dirname, extname, relative, resolve } from 'node:path';
import { complaint } from '@loopwright/protocol';

export interface GraderVersion {
  /** SHA-256 over the path (against the task's folder) and content of each module, in order of path. Hexadecimal. */
  readonly sha256: string;
  /** Modules that went into it. */
  readonly modules: number;
}

/** Static and dynamic imports, and exports from, of relative paths that are written as such. */
const relativeImport = /(?:\bfrom|\bimport)\s*\(?\s*['"](\.{1,2}\/[^'"]+)['"]/g;
const maxModules = 1000;

/**
 * The version of a grader. Packages that it uses don't count (a run keeps their versions), nor files that it reads.
 *
 * @param file module that exports the task
 * @throws `not_found` for a module that isn't there
 */
export async function graderVersion(file: string): Promise<GraderVersion> {
  const start = resolve(file);
  const folder = dirname(start);
  const found = new Map<string, string>();
  const waiting = [start];
  for (let path = waiting.pop(); path !== undefined && found.size < maxModules; path = waiting.pop()) {
    if (found.has(path)) continue;
    const text = await readModule(path);
    found.set(path, text);
    for (const [, name = ''] of text.matchAll(relativeImport)) {
      const target = await moduleAt(resolve(dirname(path), name));
      if (target !== undefined) waiting.push(target);
    }
  }
  const hash = createHash('sha256');
  const named = [...found].map(([path, text]) => [relative(folder, path).replaceAll('\\', '/'), text] as const);
  for (const [name, text] of named.sort(([a], [b]) => (a < b ? -1 : 1))) {
    const own = createHash('sha256').update(text).digest('hex');
    hash.update(`${name === relative(folder, start) ? '.' : name} ${own}\n`);
  }
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

/** TypeScript is imported by the name of what it becomes. */
async function moduleAt(path: string): Promise<string | undefined> {
  const end = extname(path);
  const stem = path.slice(0, path.length - end.length);
  const names = /^\.[mc]?js$/.test(end) ? [path, `${stem}${end.replace('js', 'ts')}`] : [path];
  for (const name of names) if ((await stat(name).catch(() => undefined))?.isFile() === true) return name;
  return undefined;
}
