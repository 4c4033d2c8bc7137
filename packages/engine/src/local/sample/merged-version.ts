/** An adapter folded into the base's weights, as a model that a version has for itself. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type AdapterWeights, adapterFiles } from '../../formats/adapter.js';
import { mergeAdapter } from '../../formats/merged-model.js';
import type { ModelSource } from '../../formats/model-source.js';
import type { BaseModel } from '../base-model.js';
import { weightSpecs } from '../models/weight-names.js';

/**
 * The base is read from memory, so that a version costs no second look at its files.
 *
 * @param directory of the adapter: its files tell the version from others
 */
export async function mergedVersion(base: BaseModel, adapter: AdapterWeights, directory: string): Promise<ModelSource> {
  const inMemory: ModelSource = {
    directory,
    config: base.config,
    rawConfig: {},
    specs: weightSpecs(base.config),
    sources: [],
    files: { read: async () => undefined },
    read: async (name, { into } = {}) => {
      const values = base.weights.get(name)!; // asked for what the specs name
      if (into === undefined) return values.slice();
      into.set(values);
      return into;
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
  const sources = await Promise.all(
    adapterFiles.map(async (name) => {
      const { size: sizeBytes, mtimeMs: modifiedAtMs } = await stat(join(directory, name));
      return { name, sizeBytes, modifiedAtMs };
    }),
  );
  return { ...mergeAdapter(inMemory, adapter), sources };
}
