/** Weights that are sampled from, with the programs compiled for them: the base model, or the saved weights of a full training. */
import { dirname } from 'node:path';
import type { Tensor } from 'onnxruntime-node';
import type { Device } from '../../devices.js';
import type { ModelConfig } from '../models/config.js';
import { weightSpecs } from '../models/weight-names.js';
import { Compiled, type TensorFactory } from '../ort/runtime.js';
import type { SamplingFiles } from './constants.js';
import { buildDecodeGraph, type DecodeAdapters } from './decode-graph.js';
import { buildHeadGraph, type HeadKind } from './head-graph.js';
import { RowCache } from './row-cache.js';
import { buildScoreHeadGraph, type ScoreHeadKind } from './score-head-graph.js';
import { buildSequenceGraph, type SequenceKind } from './sequence-graph.js';

export interface SequenceProgram {
  readonly compiled: Compiled;
  readonly weightNames: readonly string[];
}

/** Products of decoding steps and heads go by the rounded weights, where there are such; prompts and scores are always computed in float32. */
export interface InferenceModelParts extends SamplingFiles {
  readonly config: ModelConfig;
  readonly weights: ReadonlyMap<string, Float32Array>;
  readonly threads: number;
  readonly device: Device;
  readonly tensors: TensorFactory;
}

export class InferenceModel implements AsyncDisposable {
  readonly config: ModelConfig;
  readonly tensors: TensorFactory;
  readonly #parts: InferenceModelParts;
  readonly #shapes: ReadonlyMap<string, readonly number[]>;
  readonly #programs = new Map<string, Promise<Compiled>>();
  readonly #sequences = new Map<string, Promise<SequenceProgram>>();
  readonly #weightTensors = new Map<string, Tensor>();
  #spareCache: RowCache | undefined;

  constructor(parts: InferenceModelParts) {
    this.config = parts.config;
    this.tensors = parts.tensors;
    this.#parts = parts;
    this.#shapes = new Map(weightSpecs(parts.config).map(({ name, shape }) => [name, shape]));
  }

  /** Of its files. */
  get weightsPaths(): readonly string[] {
    const { file, int8 } = this.#parts;
    return int8 === undefined ? [file.path] : [file.path, int8.path];
  }

  /**
   * The program of a decoding step. One that takes several versions serves single ones as well, to the same bits and a little slower: it takes
   * the place of the other, since each has a packed copy of the weights. Call it when no program runs.
   */
  async decode(adapters: DecodeAdapters): Promise<Compiled> {
    if (adapters === 'versions') await this.#unload('decode one');
    return this.#load(`decode ${adapters}`, () => buildDecodeGraph(this.config, this.#parts, { adapters }));
  }

  /** Whether several versions were decoded together once. */
  get decodesVersions(): boolean {
    return this.#programs.has('decode versions');
  }

  head(kind: HeadKind, adapted: boolean): Promise<Compiled> {
    return this.#load(`${kind} ${adapted}`, () => buildHeadGraph(this.config, this.#parts, { kind, adapted }));
  }

  sequence(kind: SequenceKind): Promise<SequenceProgram> {
    const key = `${kind.type} ${kind.adapted}`;
    let found = this.#sequences.get(key);
    if (found === undefined) {
      const { program, weightNames } = buildSequenceGraph(this.config, kind);
      const { threads, device } = this.#parts;
      found = Compiled.load(program, { threads, device }).then((compiled) => ({ compiled, weightNames }));
      this.#sequences.set(key, found);
      found.catch(() => this.#sequences.delete(key));
    }
    return found;
  }

  /** The head for scoring. Its weight is fed, so that programs for each number of likeliest tokens share one copy. */
  scoreHead({ topK, adapted }: ScoreHeadKind): Promise<Compiled> {
    return this.#load(`score head ${topK} ${adapted}`, () => buildScoreHeadGraph(this.config, { topK, adapted }));
  }

  weightTensor(name: string): Tensor {
    let tensor = this.#weightTensors.get(name);
    if (tensor === undefined) {
      tensor = this.tensors.float(this.#parts.weights.get(name)!, this.#shapes.get(name)!);
      this.#weightTensors.set(name, tensor);
    }
    return tensor;
  }

  /** A cache for rows; given back it is used again, since touching fresh memory at each batch costs a quarter of decoding. */
  takeCache(): RowCache {
    const spare = this.#spareCache ?? new RowCache(this.config);
    this.#spareCache = undefined;
    return spare;
  }

  giveCache(cache: RowCache): void {
    cache.clear();
    this.#spareCache = cache;
  }

  async #unload(key: string): Promise<void> {
    const program = this.#programs.get(key);
    this.#programs.delete(key);
    await program?.then(
      (compiled) => compiled[Symbol.asyncDispose](),
      () => undefined, // it was never there
    );
  }

  #load(key: string, build: () => ReturnType<typeof buildDecodeGraph>): Promise<Compiled> {
    let found = this.#programs.get(key);
    if (found === undefined) {
      const { threads, device, file } = this.#parts;
      found = Compiled.load(build(), { threads, device, folder: dirname(file.path) });
      this.#programs.set(key, found);
      found.catch(() => this.#programs.delete(key));
    }
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const compiled = [
      ...this.#programs.values(),
      ...[...this.#sequences.values()].map((program) => program.then((p) => p.compiled)),
    ];
    this.#programs.clear();
    this.#sequences.clear();
    for (const program of compiled)
      await program.then(
        (p) => p[Symbol.asyncDispose](),
        () => undefined,
      );
  }
}
