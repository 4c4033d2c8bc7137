/** The snapshots at hand: the base, versions just saved, versions read from disk. The least recently used ones are let go; their files stay. */

import { access } from 'node:fs/promises';
import path from 'node:path';
import type { SamplerWeights } from '../../engine.js';
import type { AdapterWeights } from '../../formats/adapter.js';
import { readAdapter } from '../../formats/adapter.js';
import { ModelDirectory } from '../../formats/model-directory.js';
import { cacheWeightsFile, readWeights } from '../../formats/weights-file.js';
import type { BaseModel } from '../base-model.js';
import { InferenceModel } from './inference-model.js';
import { Snapshot } from './snapshot.js';

/** Adapters are small; whole models are not. */
const keptAdapters = 16;
const keptModels = 2;

export class Snapshots implements AsyncDisposable {
  readonly #base: BaseModel;
  readonly #baseModel: InferenceModel;
  readonly #cacheDirectory: string;
  readonly #adapters = new Map<string, Promise<Snapshot>>();
  readonly #models = new Map<string, Promise<Snapshot>>();

  constructor(base: BaseModel, cacheDirectory: string) {
    this.#base = base;
    this.#cacheDirectory = cacheDirectory;
    this.#baseModel = new InferenceModel(base);
    this.#adapters.set('base', Promise.resolve(new Snapshot(this.#baseModel, undefined)));
  }

  /** Keeps a copy of an adapter under the version that it is being saved as. */
  remember(version: string, adapter: AdapterWeights | undefined): void {
    if (adapter === undefined) return;
    this.#adapters.set(`version ${version}`, Promise.resolve(new Snapshot(this.#baseModel, adapter)));
    // Adapters hold nothing that needs closing.
    void forgetOldest(this.#adapters, keptAdapters, 'base');
  }

  /** @throws `model_invalid`, `checkpoint_mismatch` for files that do not fit this base model */
  async get(weights: SamplerWeights): Promise<Snapshot> {
    const key = weights.type === 'base' ? 'base' : `version ${weights.id}`;
    const known = this.#adapters.get(key) ?? this.#models.get(key);
    if (known !== undefined) {
      const map = this.#adapters.has(key) ? this.#adapters : this.#models;
      map.delete(key);
      map.set(key, known);
      return known;
    }
    if (weights.type === 'base') throw new Error('the base snapshot is always there');
    const isAdapter = await access(path.join(weights.directory, 'adapter_config.json')).then(
      () => true,
      () => false,
    );
    const map = isAdapter ? this.#adapters : this.#models;
    const loading = isAdapter ? this.#readAdapter(weights.directory) : this.#readModel(weights.directory);
    map.set(key, loading);
    loading.catch(() => map.delete(key));
    const forgotten = isAdapter
      ? forgetOldest(this.#adapters, keptAdapters, 'base')
      : forgetOldest(this.#models, keptModels);
    for (const old of forgotten)
      void old.then(
        (snapshot) => (snapshot.model === this.#baseModel ? undefined : snapshot.model[Symbol.asyncDispose]()),
        () => undefined,
      );
    return loading;
  }

  async #readAdapter(directory: string): Promise<Snapshot> {
    return new Snapshot(this.#baseModel, await readAdapter(directory, { model: this.#base.config }));
  }

  async #readModel(directory: string): Promise<Snapshot> {
    await using model = await ModelDirectory.open(directory);
    const file = await cacheWeightsFile(model, { cacheDirectory: this.#cacheDirectory });
    const { threads, tensors } = this.#base;
    return new Snapshot(
      new InferenceModel({ config: model.config, weights: await readWeights(file), file, threads, tensors }),
      undefined,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const models = [...this.#models.values()];
    this.#models.clear();
    for (const model of models)
      await model.then(
        (snapshot) => snapshot.model[Symbol.asyncDispose](),
        () => undefined,
      );
    await this.#baseModel[Symbol.asyncDispose]();
  }
}

function forgetOldest(map: Map<string, Promise<Snapshot>>, keep: number, pinned?: string): Promise<Snapshot>[] {
  const forgotten: Promise<Snapshot>[] = [];
  for (const [key, value] of map) {
    if (map.size <= keep) break;
    if (key === pinned) continue;
    map.delete(key);
    forgotten.push(value);
  }
  return forgotten;
}
