/** The process of one JavaScript program: QuickJS in WebAssembly, which knows nothing of the process around it. */
import { createRequire } from 'node:module';
import type { QuickJSContext, QuickJSHandle, QuickJSWASMModule, VmCallResult } from 'quickjs-emscripten-core';
import { answersFd, lineReader, printer, tasksFd, writeLine } from '../child-channel.js';
import type { RunTask } from '../messages.js';
import { javascriptPrelude } from './prelude.js';

type Core = typeof import('quickjs-emscripten-core');

/** Of WebAssembly's own stack; QuickJS then throws, before the process's stack ends. */
const stackBytes = 512 * 1024;

async function main(core: string, variant: string, memoryBytes: number): Promise<void> {
  const require = createRequire(import.meta.url);
  const { newQuickJSWASMModuleFromVariant } = require(core) as Core; // true: the path is that package's
  const { default: release } = require(variant) as { default: Parameters<Core['newQuickJSWASMModuleFromVariant']>[0] };
  const quickjs = await newQuickJSWASMModuleFromVariant(release);
  writeLine(answersFd, JSON.stringify({ type: 'ready' }));
  const line = lineReader(tasksFd)();
  if (line === null) return;
  writeLine(answersFd, JSON.stringify({ type: 'started' }));
  const task = JSON.parse(line) as RunTask; // true: the parent wrote it
  try {
    new Guest(quickjs, task, memoryBytes).run(task);
    writeLine(answersFd, JSON.stringify({ type: 'done', status: 'ok' }));
  } catch (error) {
    writeLine(answersFd, JSON.stringify({ type: 'done', ...failure(error) }));
  }
}

/** What the guest threw, in its own words. */
class GuestError extends Error {
  readonly type: string;
  constructor(type: string, message: string) {
    super(message);
    this.type = type;
  }
}

function failure(error: unknown): object {
  if (error instanceof GuestError) {
    if (/out of memory/i.test(error.message)) return { status: 'out_of_memory' };
    return { status: 'error', error: { type: error.type, message: error.message } };
  }
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  if (/memory/i.test(message)) return { status: 'out_of_memory' };
  return { status: 'error', error: { type: name, message: message.slice(0, 2000) } };
}

class Guest {
  readonly #vm: QuickJSContext;
  readonly #stderr: (bytes: Uint8Array) => number;
  readonly #crossing: QuickJSHandle;

  constructor(quickjs: QuickJSWASMModule, task: RunTask, memoryBytes: number) {
    const runtime = quickjs.newRuntime({ memoryLimitBytes: memoryBytes, maxStackSizeBytes: stackBytes });
    this.#vm = runtime.newContext();
    const printers = [printer(1, task.outputBytes), printer(2, task.outputBytes)] as const;
    this.#stderr = printers[1];
    const write = this.#vm.newFunction('write', (fd, text) => {
      const print = this.#vm.getNumber(fd) === 2 ? printers[1] : printers[0];
      print(Buffer.from(this.#vm.getString(text), 'utf8'));
    });
    const files = Object.fromEntries(
      Object.entries(task.files).map(([path, content]) => [path, Buffer.from(content, 'base64').toString('utf8')]),
    );
    const prelude = this.#value(this.#vm.evalCode(`(${javascriptPrelude})`, 'prelude.js'));
    const given = [write, this.#vm.newString(task.stdin), this.#vm.newString(JSON.stringify(files))];
    this.#crossing = this.#value(this.#vm.callFunction(prelude, this.#vm.undefined, ...given));
  }

  /** @throws GuestError when the program throws; what its calls come to is written as it comes */
  run({ code, calls }: RunTask): void {
    try {
      this.#settled(this.#value(this.#vm.evalCode(code, 'program.js', { type: 'global' })));
    } catch (error) {
      if (error instanceof GuestError) this.#stderr(Buffer.from(`${error.type}: ${error.message}\n`, 'utf8'));
      throw error;
    }
    for (const { entry, args } of calls) {
      let told: object;
      try {
        told = { value: JSON.parse(this.#call(entry, JSON.stringify(args))) as unknown };
      } catch (error) {
        if (!(error instanceof GuestError) || /out of memory/i.test(error.message)) throw error;
        told = { error: { type: error.type, message: error.message } };
      }
      writeLine(answersFd, JSON.stringify({ type: 'called', ...told }));
    }
  }

  #call(entry: string, args: string): string {
    const vm = this.#vm;
    // A name, checked before; const and let are in no object.
    const target = this.#value(vm.evalCode(entry, 'call.js'));
    const call = vm.getProp(this.#crossing, 'call');
    const result = this.#settled(this.#value(vm.callFunction(call, vm.undefined, target, vm.newString(args))));
    const encode = vm.getProp(this.#crossing, 'encode');
    return vm.getString(this.#value(vm.callFunction(encode, vm.undefined, result)));
  }

  /** Runs what is queued; a promise's value in its place. */
  #settled(handle: QuickJSHandle): QuickJSHandle {
    const jobs = this.#vm.runtime.executePendingJobs();
    if (jobs.error !== undefined) throw this.#thrown(jobs.error);
    const state = this.#vm.getPromiseState(handle);
    if (state.type === 'fulfilled') return state.value;
    if (state.type === 'rejected') throw this.#thrown(state.error);
    throw new GuestError('Error', 'a promise that never settles');
  }

  #value(result: VmCallResult<QuickJSHandle>): QuickJSHandle {
    if (result.error !== undefined) throw this.#thrown(result.error);
    return result.value;
  }

  #thrown(handle: QuickJSHandle): GuestError {
    const error: unknown = this.#vm.dump(handle);
    const about = (typeof error === 'object' && error !== null ? error : {}) as Readonly<Record<string, unknown>>; // true: an object
    const message = 'message' in about ? about.message : error;
    return new GuestError(
      typeof about.name === 'string' ? about.name : 'Error',
      (typeof message === 'string' ? message : (JSON.stringify(message) ?? typeof message)).slice(0, 2000),
    );
  }
}

const [core = '', variant = '', memoryBytes] = process.argv.slice(2);
await main(core, variant, Number(memoryBytes));
process.exit(0);
