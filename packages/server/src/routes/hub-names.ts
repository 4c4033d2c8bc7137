/** Base models under the names of this wire's model hub. */
import { createHash } from 'node:crypto';
import { basename, isAbsolute } from 'node:path';
import type { ModelFiles } from '@loopwright/engine';
import { hubContentArn, hubContentName } from '@loopwright/wires/sagemaker';
import type { InstalledModel, ModelRegistry } from '../models/model-registry.js';

/** Every model has this one; the hub knows versions, we don't. */
export const hubVersion = '1.0.0';

export class HubNames {
  readonly #models: ModelRegistry;
  /** Models that were asked for by path, by their hub name. */
  readonly #paths = new Map<string, string>();

  constructor(models: ModelRegistry) {
    this.#models = models;
  }

  /** Hub content name of a model id or path. */
  nameOf(idOrPath: string): string {
    if (!isAbsolute(idOrPath)) return hubContentName(idOrPath);
    const digest = createHash('sha256').update(idOrPath).digest('hex').slice(0, 12);
    const name = hubContentName(`dir-${digest}-${basename(idOrPath)}`);
    this.#paths.set(name, idOrPath);
    return name;
  }

  arnOf(idOrPath: string): string {
    return hubContentArn({ name: this.nameOf(idOrPath), version: hubVersion });
  }

  /** `org/name`, under which the tokenizer files are served. */
  huggingfaceId(idOrPath: string): string {
    return !isAbsolute(idOrPath) && idOrPath.includes('/') ? idOrPath : `loopwright/${this.nameOf(idOrPath)}`;
  }

  /** Config and tokenizer of a model. @throws as ModelRegistry.files */
  files(model: InstalledModel): Promise<ModelFiles> {
    return this.#models.files(model);
  }

  /** A model by its id, hub name, `org/name` or path. @throws `unknown_model` */
  find(name: string): InstalledModel {
    const installed = this.#models
      .list()
      .find(({ id }) => id === name || this.nameOf(id) === name || this.huggingfaceId(id) === name);
    if (installed !== undefined) return installed;
    const path = this.#paths.get(name.replace(/^loopwright\//, ''));
    return this.#models.find(path ?? name);
  }
}
