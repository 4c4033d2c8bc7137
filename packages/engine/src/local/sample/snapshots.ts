/** The snapshots at hand: the base, versions just saved, versions read from disk. The least recently used ones are let go; their files stay. */
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { SamplerWeights } from '../../engine.js';
import type { AdapterWeights } from '../../formats/adapter.js';
import { readAdapter } from '../../formats/adapter.js';
import { cacheInt8Weights, type Int8WeightsFile } from '../../formats/int8-weights-file.js';
import { ModelDirectory } from '../../formats/model-directory.js';
import type { ModelSource } from '../../formats/model-source.js';
import { readSamplerPath } from '../../formats/sampler-path.js';
import { cacheWeightsFile, readWeights } from '../../formats/weights-file.js';
import type { BaseModel } from '../base-model.js';
import { checkpointKind } from '../checkpoint-kind.js';
import { InferenceModel } from './inference-model.js';
import { mergedVersion } from './merged-version.js';
import { Snapshot } from './snapshot.js';

/** How many are kept besides those in use. Adapters are small; whole models are not. */
export const keptVersions = { adapter: 16, model: 2 } as const;

export interface SnapshotsOptions {
  /** Float32 copies of whole models that were read are put into a folder of it, and removed when the model is let go. */
  readonly cacheDirectory: string;
  /** The base's weights rounded, to sample with; whole models are rounded then as well. */
  readonly int8?: Int8WeightsFile | undefined;
  /** A snapshot was let go of, and nobody uses it: it is never handed out again. */
  readonly onForgotten: (snapshot: Snapshot) => void;
  /** Runs work at a time when nothing is computed. */
  readonly betweenSlices: (work: () => Promise<void>) => Promise<void>;
}

interface Entry {
  readonly snapshot: Promise<Snapshot>;
  /** Known once it is read. */
  kind: keyof typeof keptVersions | undefined;
  users: number;
  isForgotten: boolean;
}

export class Snapshots implements AsyncDisposable {
  readonly #base: BaseModel;
  readonly #baseModel: InferenceModel;
  readonly #options: SnapshotsOptions;
  readonly #baseSnapshot: Promise<Snapshot>;
  /** By version, the least recently used first. */
  readonly #versions = new Map<string, Entry>();
  /** Whole models that are in memory, kept or still in use. */
  readonly #models = new Set<InferenceModel>();

  constructor(base: BaseModel, options: SnapshotsOptions) {
    this.#base = base;
    this.#options = options;
    const { config, weights, file, threads, device, tensors } = base;
    this.#baseModel = new InferenceModel({ config, weights, file, int8: options.int8, threads, device, tensors });
    this.#baseSnapshot = Promise.resolve(new Snapshot(this.#baseModel, undefined));
  }

  /** Keeps a copy of an adapter under the version that it was saved as. */
  remember(version: string, adapter: AdapterWeights): void {
    const snapshot = Promise.resolve(new Snapshot(this.#baseModel, adapter));
    this.#forget(version);
    this.#versions.set(version, { snapshot, kind: 'adapter', users: 0, isForgotten: false });
    this.#forgetOldest('adapter');
  }

  /**
   * Does work with a snapshot, which stays in memory at least until the work is done.
   *
   * @throws `unknown_version`, `model_invalid`, `checkpoint_mismatch` for files that are missing, damaged or do not fit this base model
   */
  async use<T>(weights: SamplerWeights, work: (snapshot: Snapshot) => Promise<T>): Promise<T> {
    if (weights.type === 'base') return work(await this.#baseSnapshot);
    const entry = this.#entry(weights.id, weights.directory);
    entry.users++;
    try {
      return await work(await entry.snapshot);
    } finally {
      entry.users--;
      this.#closeIfUnused(entry);
    }
  }

  #entry(version: string, directory: string): Entry {
    const known = this.#versions.get(version);
    if (known !== undefined) {
      this.#versions.delete(version);
      this.#versions.set(version, known);
      return known;
    }
    const loading = this.#read(directory);
    const entry: Entry = { snapshot: loading, kind: undefined, users: 0, isForgotten: false };
    this.#versions.set(version, entry);
    loading.then(
      ({ model }) => {
        entry.kind = model === this.#baseModel ? 'adapter' : 'model';
        this.#forgetOldest(entry.kind);
      },
      () => {
        if (this.#versions.get(version) === entry) this.#versions.delete(version);
      },
    );
    return entry;
  }

  async #read(directory: string): Promise<Snapshot> {
    if ((await checkpointKind(directory)) === 'model') {
      await using source = await ModelDirectory.open(directory);
      return await this.#own(source); // it is read from until then
    }
    const adapter = await readAdapter(directory, { model: this.#base.config });
    if ((await readSamplerPath(directory)) === 'apart') return new Snapshot(this.#baseModel, adapter);
    return this.#own(await mergedVersion(this.#base, adapter, directory));
  }

  /** Of a version that has all weights for itself. */
  async #own(source: ModelSource): Promise<Snapshot> {
    const cacheDirectory = path.join(this.#options.cacheDirectory, 'versions');
    const file = await cacheWeightsFile(source, { cacheDirectory });
    const { threads, device, tensors } = this.#base;
    const weights = await readWeights(file);
    const { config } = source;
    const isRounded = this.#options.int8 !== undefined;
    const int8 = isRounded ? await cacheInt8Weights(file, { config, weights }) : undefined;
    const model = new InferenceModel({ config, weights, file, int8, threads, device, tensors });
    this.#models.add(model);
    return new Snapshot(model, undefined);
  }

  #forgetOldest(kind: keyof typeof keptVersions): void {
    const entries = [...this.#versions].filter(([, entry]) => entry.kind === kind);
    for (const [version] of entries.slice(0, Math.max(0, entries.length - keptVersions[kind]))) this.#forget(version);
  }

  #forget(version: string): void {
    const entry = this.#versions.get(version);
    if (entry === undefined) return;
    this.#versions.delete(version);
    entry.isForgotten = true;
    this.#closeIfUnused(entry);
  }

  #closeIfUnused(entry: Entry): void {
    if (!entry.isForgotten || entry.users > 0) return;
    entry.snapshot.then(this.#options.onForgotten, () => undefined); // one that could not be read left nothing
    if (entry.kind !== 'model') return; // adapters hold nothing that needs closing
    const close = async () => this.#close((await entry.snapshot).model);
    // An engine that is being closed refuses new work, and closes its models itself.
    this.#options.betweenSlices(close).catch(() => undefined);
  }

  async #close(model: InferenceModel): Promise<void> {
    if (!this.#models.delete(model)) return;
    await model[Symbol.asyncDispose]();
    // A copy that cannot be removed costs disk space alone, and the next load of this version uses it.
    for (const file of model.weightsPaths) await rm(file, { force: true }).catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled([...this.#versions.values()].map(({ snapshot }) => snapshot));
    this.#versions.clear();
    for (const model of this.#models) await this.#close(model);
    await this.#baseModel[Symbol.asyncDispose]();
  }
}
