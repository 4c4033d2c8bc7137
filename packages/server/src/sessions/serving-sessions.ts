/** Sessions that the server makes for itself, one for each base model: they answer for it and for the versions saved of it. */
import { randomUUID } from 'node:crypto';
import { basename } from 'node:path';
import { activeStatuses, LoopwrightError } from '@loopwright/protocol';
import { servingPrefix } from './session-record.js';
import type { SessionService } from './session-service.js';

const policy = { incompleteGradient: 'ignore', gapTimeoutMs: null } as const;

export class ServingSessions {
  readonly #service: SessionService;
  readonly #names = new Map<string, Promise<string>>();

  constructor(service: SessionService) {
    this.#service = service;
  }

  /**
   * The name of the session that answers for a base model, at work. Made when it is first asked for, and anew when the last one has ended.
   *
   * @param baseModel its id
   * @throws what the engine of the model can't be made of
   */
  async of(baseModel: string): Promise<string> {
    const known = this.#names.get(baseModel);
    if (known !== undefined && (await this.#isActive(await known))) return known;
    // Another caller may have made one meanwhile.
    const current = this.#names.get(baseModel);
    if (current !== undefined && current !== known) return current;
    const making = this.#make(baseModel);
    this.#names.set(baseModel, making);
    making.catch(() => this.#names.delete(baseModel));
    return making;
  }

  async #make(baseModel: string): Promise<string> {
    const slug = basename(baseModel)
      .replace(/[^\w.-]/g, '-')
      .slice(0, 40);
    const name = `${servingPrefix}${slug}-${randomUUID().slice(0, 8)}`;
    await this.#service.create({
      name,
      baseModel,
      training: { type: 'none' },
      seed: 0,
      groupName: 'serving',
      echo: {},
      policy,
    });
    const { error } = await this.#service.whenStarted(name);
    if (error !== null) throw error;
    return name;
  }

  async #isActive(name: string): Promise<boolean> {
    try {
      return activeStatuses.includes((await this.#service.session(name)).status);
    } catch (error) {
      if (LoopwrightError.isInstance(error) && error.code === 'unknown_session') return false;
      throw error;
    }
  }
}
