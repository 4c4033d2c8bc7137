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
  /** Ids that were asked for and are no plain names (paths, and `org/name@commit`), by their hub name. */
  readonly #others = new Map<string, string>();

  constructor(models: ModelRegistry) {
    this.#models = models;
  }

  /** Hub content name of a model id or path. */
  nameOf(idOrPath: string): string {
    if (isPlain(idOrPath)) return hubContentName(idOrPath);
    const digest = createHash('sha256').update(idOrPath).digest('hex').slice(0, 12);
    const last = basename(idOrPath);
    const name = hubContentName(isAbsolute(idOrPath) ? `dir-${digest}-${last}` : `hub-${digest}-${last.split('@')[0]}`);
    this.#others.set(name, idOrPath);
    return name;
  }

  arnOf(idOrPath: string): string {
    return hubContentArn({ name: this.nameOf(idOrPath), version: hubVersion });
  }

  /** `org/name`, under which the tokenizer files are served. */
  huggingfaceId(idOrPath: string): string {
    return isPlain(idOrPath) && idOrPath.includes('/') ? idOrPath : `loopwright/${this.nameOf(idOrPath)}`;
  }

  /** Config and tokenizer of a model. @throws as ModelRegistry.files */
  files(model: InstalledModel): Promise<ModelFiles> {
    return this.#models.files(model);
  }

  /** A model by its id, hub name, `org/name` or path. @throws `unknown_model` */
  async find(name: string): Promise<InstalledModel> {
    const models = await this.#models.list();
    const listed = models.find(({ id }) => id === name || this.nameOf(id) === name || this.huggingfaceId(id) === name);
    const other = this.#others.get(name.replace(/^loopwright\//, ''));
    return this.#models.find(listed?.id ?? other ?? name);
  }
}

/** Whether an id says by itself which model it is, in words that fit a hub name. */
function isPlain(id: string): boolean {
  return !isAbsolute(id) && !id.includes('@');
}
