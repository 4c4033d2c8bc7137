/** A realm for Pyodide that has nothing in it: no process, no files, no network, no way to load or make code. */
import { randomFillSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import vm from 'node:vm';

type Host = Readonly<Record<string, unknown>>;

/**
 * Loads Pyodide's module in a context of its own and hands out `loadPyodide`.
 *
 * Python reaches every JavaScript object of its realm sooner or later (by `js`, by ctypes), so the realm holds no power: the
 * globals and Node modules that Pyodide asks for are stand-ins, `import()` knows only these, and strings are never code
 * (`eval`, `Function`), also by the process's own flag.
 */
export async function pyodideRealm(
  directory: string,
  memoryBytes: number,
): Promise<{ loadPyodide: LoadPyodide; emptyObject: object }> {
  const context = vm.createContext(Object.create(null), { codeGeneration: { strings: false, wasm: true } });
  const inside = (code: string): unknown => vm.runInContext(code, context);
  Object.assign(context, globals(), { process: inside(processStandIn), console: inside(consoleStandIn) });
  const capMemory = inside(memoryCap) as (bytes: number) => void; // true: it is that
  capMemory(memoryBytes);
  const toRealm = inside('(bytes) => Uint8Array.from(bytes)') as (bytes: Uint8Array) => Uint8Array; // true: it is that
  const modules = nodeModules(directory, toRealm);
  const loaded = new Map<string, Promise<vm.Module>>();

  const load = (specifier: string): Promise<vm.Module> => {
    const known = loaded.get(specifier);
    if (known !== undefined) return known;
    const module = specifier.startsWith('file:') ? ofPyodide(specifier) : standIn(specifier);
    loaded.set(specifier, module);
    return module;
  };
  const ofPyodide = async (specifier: string): Promise<vm.Module> => {
    const file = fileURLToPath(specifier);
    if (path.dirname(file) !== directory) throw new Error(`no module ${specifier}`);
    const module = new vm.SourceTextModule(readFileSync(file, 'utf8'), {
      context,
      identifier: specifier,
      initializeImportMeta: (meta) => {
        meta.url = specifier;
      },
      importModuleDynamically: load,
    });
    await module.link(load);
    await module.evaluate();
    return module;
  };
  const standIn = async (specifier: string): Promise<vm.Module> => {
    const exported = modules[specifier];
    if (exported === undefined) throw new Error(`no module ${specifier}`);
    const all: Host = { default: exported, ...exported };
    const module = new vm.SyntheticModule(
      Object.keys(all),
      () => {
        for (const [name, value] of Object.entries(all)) module.setExport(name, value);
      },
      { context },
    );
    await module.link(load);
    await module.evaluate();
    return module;
  };

  const { namespace } = await load(pathToFileURL(path.join(directory, 'pyodide.mjs')).href);
  const { loadPyodide } = namespace as { readonly loadPyodide: LoadPyodide }; // true: Pyodide's one export
  return { loadPyodide, emptyObject: inside('Object.freeze({})') as object };
}

function globals(): Host {
  return {
    TextDecoder,
    TextEncoder,
    URL,
    AbortController,
    setTimeout: (action: () => void, ms: number) => {
      setTimeout(action, ms);
      return 0;
    },
    clearTimeout: () => {},
    setImmediate: (action: () => void) => {
      setImmediate(action);
      return 0;
    },
    performance: { now: () => performance.now() },
  };
}

/** Growing fails beyond the cap, which Python tells as MemoryError. */
const memoryCap = `(maxBytes) => {
  const { prototype } = WebAssembly.Memory;
  const { grow } = prototype;
  prototype.grow = function (pages) {
    if (this.buffer.byteLength + 65536 * pages > maxBytes) throw new RangeError('memory');
    return grow.call(this, pages);
  };
}`;

const consoleStandIn = '({ log() {}, warn() {}, error() {}, info() {}, debug() {} })';
/** What Pyodide looks at to know that it is on Node. */
const processStandIn = `({
  versions: { node: '20.0.0' }, version: 'v20.0.0', release: { name: 'node' }, platform: 'linux', argv: ['node', 'pyodide'],
  browser: false, stdin: { fd: 0 }, stdout: { fd: 1 }, stderr: { fd: 2 }, exitCode: 0,
  on() {}, cwd() { return '/'; }, getuid() { return 1000; }, umask() { return 0o22; }, binding() { return { fs: {} }; },
})`;

/** Pyodide's own files, and nothing else of what these modules do. */
function nodeModules(
  directory: string,
  toRealm: (bytes: Uint8Array) => Uint8Array,
): Readonly<Record<string, Host | undefined>> {
  const readable = new Set(['pyodide-lock.json', 'pyodide.asm.wasm', 'python_stdlib.zip']);
  const read = (file: unknown, options?: unknown): string | Uint8Array => {
    const text = String(file);
    const name = path.basename(text.startsWith('file:') ? fileURLToPath(text) : text);
    if (!readable.has(name)) throw new Error('no such file');
    const bytes = readFileSync(path.join(directory, name));
    return options === undefined ? toRealm(bytes) : bytes.toString('utf8');
  };
  const modules: Record<string, Host> = {
    'node:fs': { readFileSync: read },
    'node:fs/promises': {
      readFile: async (file: unknown, options?: unknown) => read(file, options),
      stat: async () => ({}),
      mkdir: async () => {},
    },
    'node:path': { ...path },
    'node:url': { fileURLToPath, pathToFileURL },
    'node:crypto': {
      randomFillSync: (bytes: Uint8Array) => {
        bytes.set(randomFillSync(new Uint8Array(bytes.byteLength)));
        return bytes;
      },
    },
    'node:tty': { isatty: () => false },
    'node:vm': {},
    // os.system: a shell that knows no command
    'node:child_process': { spawnSync: () => ({ status: 127 }) },
    ws: {},
  };
  modules['node:module'] = { createRequire: () => (name: string) => modules[name] };
  return modules;
}

type LoadPyodide = (options: Readonly<Record<string, unknown>>) => Promise<Pyodide>;

/** What is used of Pyodide's interface. Its own types aren't named, so that programs without it compile. */
export interface Pyodide {
  readonly FS: {
    mkdirTree(path: string): void;
    writeFile(path: string, content: Uint8Array): void;
    chdir(path: string): void;
  };
  runPython(code: string, options?: { readonly globals?: unknown }): unknown;
  setStdin(options: { readonly stdin: () => string | null } | { readonly read: (buffer: Uint8Array) => number }): void;
  setStdout(options: { readonly write: (bytes: Uint8Array) => number }): void;
  setStderr(options: { readonly write: (bytes: Uint8Array) => number }): void;
  makeMemorySnapshot(): Uint8Array;
}
