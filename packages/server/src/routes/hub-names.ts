/** Base models under the names of this wire's model hub. */
import { createHash } from 'node:crypto';
import { basename, isAbsolute } from 'node:path';
import type { ModelFiles } from '@loopwright/engine';
import { splitPinned } from '@loopwright/protocol';
import { hubContentArn, hubContentName } from '@loopwright/wires/sagemaker';
import type { InstalledModel, ModelRegistry } from '../models/model-registry.js';

/** Every model has this one; the hub knows versions, we don't. */
export const hubVersion = '1.0.0';

export class HubNames {
  readonly #models: ModelRegistry;
  /** Ids that were named before, by their hub name: paths and pinned names, which can't be found by it, and listed ones, for which a cache need not be listed again. */
  readonly #known = new Map<string, string>();

  constructor(models: ModelRegistry) {
    this.#models = models;
  }

  /** Hub content name of a model id or path. */
  nameOf(idOrPath: string): string {
    const name = isPlain(idOrPath) ? hubContentName(idOrPath) : digestName(idOrPath);
    if (!this.#known.has(name)) this.#known.set(name, idOrPath);
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
    const found = await this.#models.lookUp(name);
    if (found !== undefined) return found;
    const hubName = name.replace(/^loopwright\//, '');
    // What a hub name stands for is written in no cache, so that one not heard of before is looked for among all that there are.
    if (!this.#known.has(hubName)) for (const { id } of await this.#models.list()) this.nameOf(id);
    return this.#models.find(this.#known.get(hubName) ?? name);
  }
}

/** Of a path or pinned name: which one it is can't be said in the characters of a hub name. */
function digestName(idOrPath: string): string {
  const digest = createHash('sha256').update(idOrPath).digest('hex').slice(0, 12);
  const last = basename(splitPinned(idOrPath).repository);
  return hubContentName(`${isAbsolute(idOrPath) ? 'dir' : 'hub'}-${digest}-${last}`);
}

/** Whether an id says by itself which model it is, in words that fit a hub name. */
function isPlain(id: string): boolean {
  return !isAbsolute(id) && splitPinned(id).revision === undefined;
}
