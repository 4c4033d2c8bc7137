/** A base model in memory: its config, one copy of its weights that every program reads, and the training programs compiled for it. */
import { dirname } from 'node:path';
import type { ModelCard } from '@loopwright/protocol';
import type { Tensor } from 'onnxruntime-node';
import type { Device } from '../devices.js';
import type { WeightsFile } from '../formats/weights-file.js';
import type { ModelConfig } from './models/config.js';
import type { SequenceForm } from './models/sequence-form.js';
import { weightSpecs } from './models/weight-names.js';
import { Compiled, type TensorFactory } from './ort/runtime.js';
import { buildTrainingGraph, type Trained } from './train/training-graph.js';

export interface TrainingProgram {
  readonly compiled: Compiled;
  readonly weightNames: readonly string[];
  readonly gradientNames: readonly string[];
}

export interface TrainingProgramKind {
  readonly trained: Trained;
  readonly backward: boolean;
  /** Weights of linear layers as packed constants, which the program holds for itself, or fed from the one copy. */
  readonly packWeights: boolean;
  readonly form: SequenceForm;
}

export interface BaseModelParts {
  readonly card: ModelCard;
  readonly config: ModelConfig;
  /** float32 by name; read-only by agreement. */
  readonly weights: ReadonlyMap<string, Float32Array>;
  /** The same weights as a file, for programs that hold them as constants. */
  readonly file: WeightsFile;
  readonly threads: number;
  /** `cpu` by default. */
  readonly device?: Device;
  readonly tensors: TensorFactory;
}

/** Every set of target modules has programs of its own, of about 110 MB each in a model of 135M: those of sets that nobody trains any more go. */
const keptPrograms = 8;

interface ProgramSlot {
  readonly program: Promise<TrainingProgram>;
  /** Passes that run it. */
  users: number;
}

export class BaseModel implements AsyncDisposable {
  readonly card: ModelCard;
  readonly config: ModelConfig;
  readonly weights: ReadonlyMap<string, Float32Array>;
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  readonly file: WeightsFile;
  readonly threads: number;
  readonly device: Device;
  readonly tensors: TensorFactory;
  /** Lately used ones last. */
  readonly #programs = new Map<string, ProgramSlot>();
  readonly #weightTensors = new Map<string, Tensor>();

  constructor({ card, config, weights, file, threads, device = 'cpu', tensors }: BaseModelParts) {
    this.card = card;
    this.config = config;
    this.weights = weights;
    this.shapes = new Map(weightSpecs(config).map(({ name, shape }) => [name, shape]));
    this.file = file;
    this.threads = threads;
    this.device = device;
    this.tensors = tensors;
  }

  /** Does work with the training program for these arrays, which is compiled at its first use and kept while it is among those used lately. */
  async withProgram<T>(kind: TrainingProgramKind, work: (program: TrainingProgram) => Promise<T>): Promise<T> {
    const { trained, backward, packWeights, form } = kind;
    const arrays = trained.type === 'lora' ? [...trained.targetModules].sort().join(',') : trained.type;
    const key = `${arrays} ${backward} ${packWeights} ${form.blocks} ${form.attention} ${form.layers}`;
    const slot = this.#programs.get(key) ?? { program: this.#compile(kind), users: 0 };
    this.#programs.delete(key);
    this.#programs.set(key, slot);
    slot.users++;
    try {
      const program = await slot.program.catch((error: unknown) => {
        if (this.#programs.get(key) === slot) this.#programs.delete(key);
        throw error;
      });
      return await work(program);
    } finally {
      slot.users--;
      await this.#letGo();
    }
  }

  /** Programs that are compiled now, for tests. */
  get programCount(): number {
    return this.#programs.size;
  }

  async #letGo(): Promise<void> {
    for (const [key, { program, users }] of this.#programs) {
      if (this.#programs.size <= keptPrograms) return;
      if (users > 0) continue;
      this.#programs.delete(key);
      await dispose(program);
    }
  }

  async #compile(kind: TrainingProgramKind): Promise<TrainingProgram> {
    const constants = kind.packWeights ? this.file : undefined;
    const { program, weightNames, gradientNames } = buildTrainingGraph(this.config, { ...kind, constants });
    const options = { threads: this.threads, device: this.device, folder: constants && dirname(constants.path) };
    return { compiled: await Compiled.load(program, options), weightNames, gradientNames };
  }

  /** The base weight as a tensor over the shared array. */
  weightTensor(name: string): Tensor {
    let tensor = this.#weightTensors.get(name);
    if (tensor === undefined) {
      tensor = this.tensors.float(this.weights.get(name)!, this.shapes.get(name)!);
      this.#weightTensors.set(name, tensor);
    }
    return tensor;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const programs = [...this.#programs.values()];
    this.#programs.clear();
    for (const { program } of programs) await dispose(program);
  }
}

/** One that failed to compile has nothing to end. */
async function dispose(program: Promise<TrainingProgram>): Promise<void> {
  const compiled = await program.then(
    ({ compiled }) => compiled,
    () => undefined,
  );
  await compiled?.[Symbol.asyncDispose]();
}
