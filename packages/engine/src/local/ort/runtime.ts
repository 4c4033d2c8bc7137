/** The one place that touches the ONNX runtime: loading it, making sessions, running them. */
import { randomUUID } from 'node:crypto';
import { unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { LoweredProgram } from '@loopwright/graph';
import { LoopwrightError } from '@loopwright/protocol';
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { type Device, deviceFacts } from '../../devices.js';
import { describeHost, hostFacts, unsupportedHost } from './host.js';

type Ort = typeof import('onnxruntime-node');
let loading: Promise<Ort> | undefined;

/**
 * Loads the native runtime once. @throws `unsupported_host` where it has no binary for this machine
 *
 * Official builds of the runtime (1.30) report usage to their maker by default; nothing may leave the machine unasked, so that is
 * switched off before the library is loaded.
 */
export async function loadRuntime(): Promise<Ort> {
  process.env.ORT_DISABLE_TELEMETRY = '1';
  loading ??= import('onnxruntime-node').catch((cause: unknown) => {
    loading = undefined;
    throw unsupportedHost(`${describeHost(hostFacts())}, where the runtime does not load`, cause);
  });
  return loading;
}

export type Feeds = Record<string, Tensor>;
export type Arrays = Readonly<Record<string, Float32Array | BigInt64Array>>;

export interface CompiledOptions {
  readonly threads: number;
  /** `cpu` by default; parts of a program that a device can't compute are computed on the processor. */
  readonly device?: Device;
  /** Folder that holds the weights file of external constants; without one the program has none. */
  readonly folder?: string | undefined;
}

/** A program loaded into the runtime. */
export class Compiled implements AsyncDisposable {
  readonly #session: InferenceSession;

  private constructor(session: InferenceSession) {
    this.#session = session;
  }

  static async load(program: LoweredProgram, { threads, device = 'cpu', folder }: CompiledOptions): Promise<Compiled> {
    const ort = await loadRuntime();
    const options: InferenceSession.SessionOptions = {
      executionProviders: [deviceFacts[device].provider],
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      graphOptimizationLevel: 'all',
      // Without a plan per shape, the peak of a training pass is 4.8 GB where it was 7.8, for 3 % of speed.
      enableMemPattern: false,
      // Every session has threads of its own, which go on spinning after a run: beside them the next program, such as the head after a
      // decoding step, has half of the processors. Decoding of 1 and 8 rows is 1.7 times as fast on two cores when they stop.
      extra: { session: { force_spinning_stop: '1' } },
      logSeverityLevel: 3,
    };
    try {
      if (folder === undefined) return new Compiled(await ort.InferenceSession.create(program.bytes, options));
      // External constants are found beside the model, so it is written there for the time of loading.
      const file = path.join(folder, `program-${randomUUID()}.onnx`);
      await writeFile(file, program.bytes);
      try {
        return new Compiled(await ort.InferenceSession.create(file, options));
      } finally {
        await unlink(file);
      }
    } catch (cause) {
      throw runtimeError('the runtime refused a program', cause);
    }
  }

  /** Runs the program; outputs are copies that belong to the caller. */
  async run(feeds: Feeds, fetches: readonly string[]): Promise<Arrays> {
    try {
      const outputs = await this.#session.run(feeds, fetches);
      return Object.fromEntries(fetches.map((name) => [name, outputs[name]!.data as Float32Array | BigInt64Array]));
    } catch (cause) {
      throw runtimeError('the runtime failed in a computation', cause);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#session.release();
  }
}

function runtimeError(what: string, cause: unknown): LoopwrightError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const code = /alloc|out of memory/i.test(reason) ? 'out_of_memory' : 'engine_failed';
  return new LoopwrightError({ code, message: `engine: ${what}: ${reason}`, cause });
}

/** Views of arrays as tensors of the runtime; feeding copies nothing. */
export class TensorFactory {
  readonly #ort: Ort;

  constructor(ort: Ort) {
    this.#ort = ort;
  }

  float(data: Float32Array, dims: readonly number[]): Tensor {
    return new this.#ort.Tensor('float32', data, dims);
  }

  int(data: BigInt64Array, dims: readonly number[]): Tensor {
    return new this.#ort.Tensor('int64', data, dims);
  }
}

/** Outputs by name, where the dtype is known from the program. */
export function floats(outputs: Arrays, name: string): Float32Array {
  const found = outputs[name];
  if (!(found instanceof Float32Array)) throw new Error(`output ${name} is not float32`);
  return found;
}

export function integers(outputs: Arrays, name: string): BigInt64Array {
  const found = outputs[name];
  if (!(found instanceof BigInt64Array)) throw new Error(`output ${name} is not int64`);
  return found;
}
